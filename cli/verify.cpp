// Checks files against their digests. Only damage is exit code 1: scripts delete or replace a file then. A file that is
// missing, or that is not Holdfast's, was not checked and gives 2.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "folder.h"
#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/exchange/any_file.h"
#include "progress.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

// These files do not change the exit code: none of them is a savepoint that a run would load.
void mention_leftovers(FileSystem& files, const std::string& folder, Console& console) {
  for (const std::string& name : files.list(folder)) {
    const std::string path = printable((std::filesystem::path(folder) / name).string());
    if (name.find(".h5.damaged") != std::string::npos && !name.ends_with(".txt")) {
      console.problems << "holdfast: " << path << " was set aside as damaged; " << path << ".txt says why\n";
    } else if (is_temporary_name(name)) {
      console.problems << "holdfast: " << path
                       << " is being written, or was left by a writer that died; the next start of the run removes "
                          "it\n";
    }
  }
}

std::vector<std::string> files_in(FileSystem& files, const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : files.list(folder)) {
    if (name.ends_with(".h5")) paths.push_back((std::filesystem::path(folder) / name).string());
  }
  // A mistyped folder would otherwise pass as verified.
  if (paths.empty()) {
    throw Error(ErrorCode::not_found,
                fmt::format("folder {} has no *.h5 file; give a folder of savepoints or one file", folder));
  }
  return paths;
}

// True for an intact file of another kind. False for a file that may be a damaged file of Holdfast.
bool is_of_others(FileSystem& files, const std::string& path) {
  try {
    return format::recognise(files, path) != format::FileKind::holdfast;
  } catch (const Error&) {
    return false;
  }
}

// True for a FIFO, a device or a loop of links. These are not damaged files.
bool is_no_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return error ? std::filesystem::is_symlink(path, error)
               : std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

int say_what_is_wrong(FileSystem& files, const std::string& path, const Error& error, Console& console) {
  if (error.code() == ErrorCode::invalid_file && is_of_others(files, path)) {
    console.problems
        << "holdfast: " << printable(path)
        << " was not verified: it is not a Holdfast file, so it has no digests; \"holdfast inspect\" shows "
           "what it holds\n";
    return kNotDone;
  }
  console.problems << "holdfast: " << printable(error.what()) << "\n";
  // A script may delete a file at kDamaged, so only the content of a file can give it.
  return error.code() == ErrorCode::invalid_file && !is_no_file(path) ? kDamaged : kNotDone;
}

int verify_file(FileSystem& files, const std::string& path, Console& console) {
  try {
    const format::ArrayFile file = format::ArrayFile::open(files, path);
    {
      // The end of this block clears the progress line before the result is printed.
      Progress progress(console, fmt::format("verifying {}", path));
      file.verify([&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
    }
    console.out << printable(path) << ": whole, " << describe_count(file.arrays().size(), "array") << ", "
                << describe_count(file.file_bytes(), "byte") << ", digest " << file.file_digest().hex() << "\n";
    return kDone;
  } catch (const Error& error) {
    return say_what_is_wrong(files, path, error, console);
  }
}

// Checks every byte of the file at `path`, or of each *.h5 file in the folder at `path`, by digest. Writes one line for
// each file: to `console.out` when it is whole, else to `console.problems`. There it also mentions files that a dead
// writer left in the folder and files that were set aside; these do not change the exit code. Returns kDone only if all
// files are whole, kNotDone if a file could not be checked or is not Holdfast's, else kDamaged. Throws Error for a
// folder that cannot be listed or has no such file.
int verify(FileSystem& files, const std::string& path, Console& console) {
  if (!is_folder(files, path)) return verify_file(files, path, console);
  mention_leftovers(files, path, console);
  int worst = kDone;
  // The larger code wins: kNotDone says that the answer for the folder is not complete.
  for (const std::string& file : files_in(files, path)) worst = std::max(worst, verify_file(files, file, console));
  return worst;
}

}  // namespace

void add_verify(Subcommands& commands) {
  commands.add<std::string>(
      "verify",
      "Check every byte of a file, or of each *.h5 in a folder, against its digests. Exit code: 0 whole, 1 damaged, 2 "
      "not "
      "checked",
      [](CLI::App& command, std::string& path) {
        command.add_option("PATH", path, "A file that Holdfast wrote, or a folder of such files")->required();
      },
      [&commands](const std::string& path) { return verify(commands.files, path, commands.console); });
}

}  // namespace holdfast::cli
