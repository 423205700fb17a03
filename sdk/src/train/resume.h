#pragma once

// Finds the state that a run continues from: the newest whole savepoint of its directory.

#include <functional>
#include <optional>
#include <string>

#include "train/snapshot.h"

namespace holdfast {

// "savepoint-0000000120.h5": names sort as their steps do.
std::string savepoint_name(std::int64_t step);
// Names of the folder's savepoints, oldest first; empty when the folder does not exist.
std::vector<std::string> list_savepoints(FileSystem& files, const std::string& folder);

struct FoundSavepoint {
  std::string path;
  Snapshot snapshot;
};

// A damaged savepoint is renamed to "<name>.damaged", told to `when_set_aside`, and the one before it is taken.
// Leftovers of writers that died are removed.
std::optional<FoundSavepoint> find_newest_savepoint(
    FileSystem& files, const std::string& folder,
    const std::function<void(const std::string& path, const std::string& why)>& when_set_aside);

}  // namespace holdfast
