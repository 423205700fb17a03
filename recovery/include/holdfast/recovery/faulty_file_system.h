#pragma once

// A file system of savepoints that fails where faults ask for it. A run's own code opens, writes, renames and deletes
// savepoints through it. There the faults of the phases writing, before_rename, after_rename and pruning strike, and
// full and failing disks appear.
//
//   const std::unique_ptr<FileSystem> files = faulty_file_system(posix_file_system(), worker.faults());

#include <memory>

#include "holdfast/base/file_system.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {

// Faults concern files called savepoint-<step>... and their temporary files; all others are passed to `target` as they
// are. The step that a fault names is that of the savepoint that is being written; in pruning, that of the newest that
// was written. A full disk fails operations that may need space; reading and deleting go on. One savepoint at a time
// may be written; any thread. Both references must outlive the file system and its files.
std::unique_ptr<FileSystem> faulty_file_system(FileSystem& target, const Faults& faults);

}  // namespace holdfast::recovery
