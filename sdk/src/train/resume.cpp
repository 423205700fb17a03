#include "train/resume.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"

namespace holdfast {
namespace {

constexpr std::string_view kPrefix = "savepoint-";
constexpr std::string_view kSuffix = ".h5";

bool is_savepoint_name(const std::string& name) {
  if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) || !name.ends_with(kSuffix))
    return false;
  return std::all_of(name.begin() + kPrefix.size(), name.end() - kSuffix.size(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string savepoint_name(std::int64_t step) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%010" PRId64, step);
  return std::string(kPrefix) + digits + std::string(kSuffix);
}

std::vector<std::string> list_savepoints(FileSystem& files, const std::string& folder) {
  std::vector<std::string> names;
  if (!files.exists(folder)) return names;
  for (const std::string& name : files.list(folder)) {
    if (is_savepoint_name(name)) names.push_back(name);
  }
  return names;
}

std::optional<FoundSavepoint> find_newest_savepoint(
    FileSystem& files, const std::string& folder,
    const std::function<void(const std::string& path, const std::string& why)>& when_set_aside) {
  if (!files.exists(folder)) return std::nullopt;
  format::remove_temporary_files(files, folder);
  std::vector<std::string> names = list_savepoints(files, folder);
  for (; !names.empty(); names.pop_back()) {
    const std::string path = folder + "/" + names.back();
    try {
      return FoundSavepoint{path, read_savepoint(files, path)};
    } catch (const Error& failure) {
      if (failure.code() != ErrorCode::invalid_file) throw;
      files.rename(path, path + ".damaged");
      files.sync_folder(folder);
      when_set_aside(path, failure.what());
    }
  }
  return std::nullopt;
}

}  // namespace holdfast
