#pragma once

// The savepoints of a run's folder: where a run continues from, and which savepoints it keeps. The rules are format's
// (holdfast/format/catalogue.h); here they meet the training state.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/train/model_checkpoint.h"
#include "train/state/snapshot.h"

namespace holdfast {

// "savepoint-0000000120.h5".
std::string savepoint_name(std::int64_t step);

// By the names of the folder's files; none where there are none.
std::optional<std::int64_t> newest_savepoint_step(FileSystem& files, const std::string& folder);

// The paths of the folder's savepoints, oldest first.
std::vector<std::string> list_savepoint_paths(FileSystem& files, const std::string& folder);
// The file's metadata, without its arrays, which are not read.
std::string savepoint_metadata(FileSystem& files, const std::string& path);
// Takes the file from among the savepoints, durably: it is called "<path>.replaced" from then on.
void replace_savepoint(FileSystem& files, const std::string& path);
// Deletes the folders' savepoint called `name`, once the one called `newer` in the first folder was read back and found
// whole. What fails is logged.
void drop_savepoint(FileSystem& files, const std::vector<std::string>& folders, const std::string& name,
                    const std::string& newer);

// Told of what was worked around; `set_aside_as` is the damaged file's new name, empty when no file was set aside.
using SavepointProblem =
    std::function<void(const std::string& path, const std::string& why, const std::string& set_aside_as)>;

// The path of the newest whole one of all folders: that which `read`, given the newest ones first, does not find
// damaged. `is_owner`, for the owner of the run alone: leftovers of writers that died are removed, damaged savepoints
// renamed to "<name>.damaged".
std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const SavepointProblem& report, bool is_owner = true);

// To be called on one thread with the name of each savepoint that has become durable in `folder`: verifies it, copies
// it to `copies`, and lets those go that `options` do not keep. Throws Error{invalid_argument} for options that cannot
// be.
std::function<void(const std::string& name)> make_savepoint_keeper(FileSystem& files, const std::string& folder,
                                                                   const std::vector<std::string>& copies,
                                                                   const ModelCheckpointOptions& options);

}  // namespace holdfast
