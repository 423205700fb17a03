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

RenameResult rename_all(const std::vector<FolderRename>& renames,
                        const std::function<std::string(const FolderRename&)>& rename_one) {
  std::size_t renamed = 0;
  std::string problem;
  while (renamed < renames.size() && problem.empty()) {
    problem = rename_one(renames[renamed]);
    if (problem.empty()) ++renamed;
  }
  if (problem.empty()) return {};
  RenameResult result{.why = fmt::format("{} cannot be renamed: {}", renames[renamed].from.string(), problem)};
  // Each folder goes back under its name, so that the user finds either run whole.
  while (renamed > 0) {
    const FolderRename& done = renames[--renamed];
    problem = rename_one({.from = done.to, .to = done.from});
    if (problem.empty()) continue;
    result.is_undone = false;
    result.why += fmt::format("; {} has become {} and cannot be renamed back ({}), so rename it yourself",
                              done.from.string(), done.to.string(), problem);
  }
  return result;
}

}  // namespace holdfast::recovery
