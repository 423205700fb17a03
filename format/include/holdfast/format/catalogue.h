#pragma once

// The savepoints of a run: files "savepoint-<step>.h5" of one folder, and copies of them in further folders, best on
// other disks. One writer at a time owns the folders; any number of readers may look for the newest savepoint
// meanwhile.
//
// It promises that an old savepoint goes only after a newer one was read back and found whole, that the newest whole
// one is found in whichever folder it is, that damaged files are set aside and never deleted, and that files of other
// names are never touched. What a savepoint means is its writer's business.

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

// "savepoint-0000000120.h5". `step` is not negative.
std::string savepoint_name(std::int64_t step);
// None for any name that savepoint_name() does not give.
std::optional<std::int64_t> savepoint_step(std::string_view name);

// The folder's savepoints by step, oldest first, with name, step and size; none when the folder does not exist. One
// that goes while this looks is left out, and so is what has such a name and is not a file.
std::vector<SavepointEntry> list_savepoints(FileSystem& files, const std::string& folder);

// The value of `name` in the metadata's object "metrics", which belongs to exactly the state that the file holds. None
// when there is no such number.
std::optional<double> metric_of(std::string_view metadata_json, const std::string& name);

// Reads the whole file and checks every digest. Returns the file's digest; throws what ArrayFile throws.
Digest verify_savepoint(FileSystem& files, const std::string& path, const ReadOptions& options = {});

// Renames a damaged file to "<path>.damaged" (or ".damaged-2" and so on, where that exists) and writes `why` into a
// text file of that name with ".txt" behind it. Returns the path that the file has got.
std::string set_aside(FileSystem& files, const std::string& path, const std::string& why);

// What was met and worked around.
struct Problem {
  std::string path;            // of a file or folder
  std::string why;             // a sentence
  std::string set_aside_as{};  // what the file is called since then; empty when it was left
};
using ProblemReport = std::function<void(const Problem& problem)>;

struct FindOptions {
  // The one writer, before it begins: removes what dead writers left and sets damaged savepoints aside. A reader
  // changes nothing.
  bool is_owner = false;
  ProblemReport report{};
};

// Calls read(path) on the savepoints of all folders, the newest first and of equal steps that of the first folder,
// until one call returns; that path is the result. What `read` throws decides:
//   invalid_file   it is damaged, or not a file: the next one is taken
//   not_found      it went meanwhile: the folders are listed again, which ends after a hundred times
//   input_output,  a copy of the same step is taken; where there is none, the error is passed on, since an older state
//   refused        is not what was asked for
// and anything else is passed on. A folder that cannot be listed is passed over when another can. None when there is no
// whole savepoint.
std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const FindOptions& options = {});

}  // namespace holdfast::format
