#include "run_directory/folder_renames.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace holdfast::recovery {

std::string rename_folder(const FolderRename& rename) {
  if (::renameat2(AT_FDCWD, rename.from.c_str(), AT_FDCWD, rename.to.c_str(), RENAME_NOREPLACE) == 0) return "";
  if (errno != EINVAL) return std::generic_category().message(errno);
  // A file system that knows no such flag.
  std::error_code error;
  std::filesystem::rename(rename.from, rename.to, error);
  return error ? error.message() : "";
}

std::string rename_all(const std::vector<FolderRename>& renames,
                       const std::function<std::string(const FolderRename&)>& rename_one) {
  std::size_t renamed = 0;
  std::string why;
  while (renamed < renames.size() && why.empty()) {
    why = rename_one(renames[renamed]);
    if (why.empty()) ++renamed;
  }
  if (why.empty()) return "";
  why = fmt::format("{} cannot be renamed: {}", renames[renamed].from.string(), why);
  // Each folder goes back under its name, so that the user finds either run whole.
  while (renamed > 0) {
    const FolderRename& done = renames[--renamed];
    const std::string problem = rename_one({.from = done.to, .to = done.from});
    if (problem.empty()) continue;
    why += fmt::format("; {} has become {} and cannot be renamed back ({}), so rename it yourself", done.from.string(),
                       done.to.string(), problem);
  }
  return why;
}

}  // namespace holdfast::recovery
