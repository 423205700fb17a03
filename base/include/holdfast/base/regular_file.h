#pragma once

// Files that hold bytes, and nothing else. Whoever can prepare a folder can put a FIFO, a device or a link there, under
// the name of a file that is expected: a reader would wait for a writer that never comes, or read without end.

#include <string>

#include "holdfast/base/shared_memory.h"
#include "holdfast/base/system_calls.h"

namespace holdfast {

// open(2), close-on-exec, without waiting. `flags` as there; with O_NOFOLLOW a symbolic link is refused, too. `purpose`
// ends "cannot ...": "open run/lock". Throws Error{invalid_file} where there is something else than a regular file,
// system_error() for what else can fail.
FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose);
FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose, SystemCalls& calls);

}  // namespace holdfast
