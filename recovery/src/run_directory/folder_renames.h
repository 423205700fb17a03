#pragma once

// Renames folders together: those of a run that is put aside, with the folders of its copies.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::recovery {

struct FolderRename {
  std::filesystem::path from;
  std::filesystem::path to;
};

struct RenameResult {
  std::string why{};      // it could not be done; empty when it is done
  bool is_undone = true;  // after a failure, each folder has its name; otherwise `why` says what to rename
};

// Renames a folder, and never replaces one that another process has put there meanwhile. Returns why it could not;
// empty when it is done.
std::string rename_folder(const FolderRename& rename);

// Renames all of them or none. A folder that cannot get its name back is named in the result, with both names, and the
// others get theirs all the same. `rename_one` is for tests.
RenameResult rename_all(const std::vector<FolderRename>& renames,
                        const std::function<std::string(const FolderRename&)>& rename_one = rename_folder);

}  // namespace holdfast::recovery
