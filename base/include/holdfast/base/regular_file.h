#pragma once

// Opens regular files and refuses everything else. Anyone who can write to a folder can put a FIFO, a
// device or a link there, under the name of an expected file. A reader would then wait for a writer
// that never comes, or read without end.

#include <string>

#include "holdfast/base/shared_memory.h"
#include "holdfast/base/system_calls.h"

namespace holdfast {

// Opens as open(2) does, close-on-exec and without waiting. `flags` are those of open(2); O_NOFOLLOW
// refuses symbolic links too. `purpose` completes the sentence "cannot ...": "open run/lock". Throws
// Error{invalid_file} for anything that is not a regular file, and system_error() for other failures.
FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose);
FileDescriptor open_regular_file(const std::string& path, int flags, const std::string& purpose, SystemCalls& calls);

}  // namespace holdfast
