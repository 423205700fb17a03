#pragma once

// The savepoints in a run's folder: the one that the run continues from, and those that it keeps. The rules are those
// of holdfast/format/catalogue.h; here they are applied to the training state.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/train/model_checkpoint_options.h"
#include "train/state/snapshot.h"

namespace holdfast {

// "savepoint-0000000120.h5".
std::string savepoint_name(std::int64_t step);

// The step of the newest savepoint, by the names of the folder's files; empty if the folder has no savepoint.
std::optional<std::int64_t> newest_savepoint_step(FileSystem& files, const std::string& folder);

// The paths of the folder's savepoints, oldest first.
std::vector<std::string> list_savepoint_paths(FileSystem& files, const std::string& folder);
// The file's metadata. Its arrays are not read.
std::string savepoint_metadata(FileSystem& files, const std::string& path);
// Renames the file to "<path>.replaced" (or ".replaced-2" and so on), durably, so that it no longer counts as a
// savepoint.
void replace_savepoint(FileSystem& files, const std::string& path);
// Deletes the savepoint called `name` from `folders`, after the one called `newer` in the first folder was read back
// and found whole. A failure is logged, not thrown.
void drop_savepoint(FileSystem& files, const std::vector<std::string>& folders, const std::string& name,
                    const std::string& newer);

// Called for each savepoint or folder that was passed over. `set_aside_as` is the damaged file's new name, or empty if
// no file was renamed.
using SavepointProblem =
    std::function<void(const std::string& path, const std::string& why, const std::string& set_aside_as)>;

// Calls `read` with the paths of savepoints, newest first, until it accepts one, and returns that path; empty without a
// whole savepoint. `read` throws Error{invalid_file} for a damaged savepoint. With `is_owner`, which only the owner of
// the run may set, leftovers of dead writers are removed, and damaged savepoints are renamed to "<name>.damaged".
std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const SavepointProblem& report, bool is_owner = true);

// Returns a function to call, on one thread, with the name of each savepoint that has become durable in `folder`. It
// verifies the savepoint, copies it to `copies`, and deletes the savepoints that `options` do not keep. Throws
// Error{invalid_argument} for options that make no sense.
std::function<void(const std::string& name)> make_savepoint_keeper(FileSystem& files, const std::string& folder,
                                                                   const std::vector<std::string>& copies,
                                                                   const ModelCheckpointOptions& options);

}  // namespace holdfast
