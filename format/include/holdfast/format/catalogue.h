#pragma once

// The savepoints of a run: the files "savepoint-<step>.h5" of one folder, and copies of them in further
// folders, best on other disks. One writer at a time owns the folders. Any number of readers may look
// for the newest savepoint at the same time.
//
// Three promises. The newest whole savepoint is found in whichever folder it is. Damaged files are set
// aside and never deleted. Files of other names are never touched. What a savepoint means is up to its
// writer. savepoint_keeper.h deletes old ones.
//
//   const std::vector<std::string> folders{"run", "/mnt/backup/run"};
//   State state;
//   const auto path = find_newest_savepoint(
//       posix_file_system(), folders, [&](const std::string& candidate) { state = load(candidate); });
//   if (!path) state = initial_state();

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/retention.h"

namespace holdfast::format {

// The file name for a step: "savepoint-0000000120.h5" for 120. `step` is not negative.
std::string savepoint_name(std::int64_t step);
// The step of a file name; none for any name that savepoint_name() does not make.
std::optional<std::int64_t> savepoint_step(std::string_view name);

// The folder's savepoints, oldest first, with name, step and size; none when the folder does not exist.
// A savepoint that is deleted during the call is left out, and so is anything of such a name that is
// not a regular file. Does not check the files.
std::vector<SavepointEntry> list_savepoints(FileSystem& files, const std::string& folder);

// The value of `name` in the object "metrics" of a savepoint's metadata. It belongs to exactly the state
// in the file. None when there is no such number.
std::optional<double> metric_of(std::string_view metadata_json, const std::string& name);

// Reads the whole file and checks every digest. Returns the file's digest. Throws what ArrayFile throws.
Digest verify_savepoint(FileSystem& files, const std::string& path, const ReadOptions& options = {});

// Renames a damaged file to "<path>.damaged", or ".damaged-2" and so on when that exists. Writes `why` into
// a text file of the same name with ".txt" appended. Returns the new path of the damaged file.
std::string set_aside(FileSystem& files, const std::string& path, const std::string& why);

// A problem that was found and worked around.
struct Problem {
  std::string path;            // of a file or folder
  std::string why;             // a sentence for the log
  std::string set_aside_as{};  // the new path of the file; empty when it was left where it is
};
// Called for each problem, on the thread that looks.
using ProblemReport = std::function<void(const Problem& problem)>;

// How savepoints are looked for.
struct FindOptions {
  // Set by the one writer, before it begins: removes temporary files that dead writers left, and sets
  // damaged savepoints aside. A reader changes nothing.
  bool is_owner = false;
  ProblemReport report{};  // empty: problems are not reported
};

// Calls read(path) on the savepoints of all folders until one call returns, and returns that path. The
// newest comes first; among equal steps, the one in the first folder. None when there is no whole
// savepoint. An Error from `read` decides what happens next:
//   invalid_file   the file is damaged or is not a file: the next one is tried
//   not_found      the file was deleted meanwhile: the folders are listed again, up to a hundred times
//   input_output,  a copy of the same step is tried. Without a copy, the error is passed on: going back to
//   refused        an older state could lose work that a second start would find
//   all others     passed on
// A folder that cannot be listed is skipped when another can be listed.
std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const FindOptions& options = {});

}  // namespace holdfast::format
