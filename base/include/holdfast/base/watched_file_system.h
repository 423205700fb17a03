#pragma once

#include <functional>
#include <memory>

#include "holdfast/base/file_system.h"

namespace holdfast {

using FileWatcher = std::function<void(const FileOperation&)>;

// As in file_system.h. In addition `after` is called on the same thread when an operation that `before` let through has
// ended, also when it ended with an Error.
std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, FileWatcher before, FileWatcher after);

}  // namespace holdfast
