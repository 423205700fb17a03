#include "verify.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "exit_code.h"
#include "holdfast/format/array_file.h"

namespace holdfast::cli {
namespace {

std::vector<std::string> files_in(FileSystem& files, const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : files.list(folder)) {
    if (name.ends_with(".h5")) paths.push_back((std::filesystem::path(folder) / name).string());
  }
  if (paths.empty()) {
    throw Error(ErrorCode::not_found,
                "folder " + folder + " has no *.h5 file; give a folder of savepoints or one file");
  }
  return paths;
}

int verify_file(FileSystem& files, const std::string& path, std::ostream& out, std::ostream& problems) {
  try {
    const format::ArrayFile file = format::ArrayFile::open(files, path);
    file.verify();
    out << path << ": whole, " << file.arrays().size() << " arrays, " << file.file_bytes() << " bytes, digest "
        << file.file_digest().hex() << "\n";
    return kWhole;
  } catch (const Error& error) {
    problems << "holdfast: " << error.what() << "\n";
    return exit_code(error);
  }
}

}  // namespace

int verify(FileSystem& files, const std::string& path, std::ostream& out, std::ostream& problems) {
  std::error_code ignored;  // what cannot be looked at is no folder, and opening it says why
  if (!std::filesystem::is_directory(path, ignored)) return verify_file(files, path, out, problems);
  int worst = kWhole;
  for (const std::string& file : files_in(files, path))
    worst = std::max(worst, verify_file(files, file, out, problems));
  return worst;
}

}  // namespace holdfast::cli
