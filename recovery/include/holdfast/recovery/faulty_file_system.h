#pragma once

// The file system of savepoints, as faults would have it: where a run's own code opens, writes, renames and deletes
// savepoints through it, faults of phases writing, before_rename, after_rename and pruning strike, and full disks and
// failing ones show.

#include <memory>

#include "holdfast/base/file_system.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {

// Files called savepoint-<step>... are looked at, their temporary ones too, all others are left alone. The step that a
// fault names is that of the savepoint that is being written; in pruning, of the newest that was written. A full disk
// fails what may need space; reading and deleting go on. One savepoint at a time may be written; any thread. Both
// references must outlive the file system and its files.
std::unique_ptr<FileSystem> faulty_file_system(FileSystem& target, const Faults& faults);

}  // namespace holdfast::recovery
