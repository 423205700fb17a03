#pragma once

// A watched file system (file_system.h) that also reports the end of each operation: the savepoint
// writer uses it to tell the watchdog how long a file operation has been under way.

#include <functional>
#include <memory>

#include "holdfast/base/file_system.h"

namespace holdfast {

// Is called on the thread of the operation.
using FileWatcher = std::function<void(const FileOperation&)>;

// Calls `before` as in file_system.h. In addition it calls `after`, on the same thread, when an
// operation that `before` let through has ended, also when it ended with an Error. `after` must not
// throw. `target` must outlive the result.
std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, FileWatcher before, FileWatcher after);

}  // namespace holdfast
