#pragma once

// What channels, processes and locks need of file descriptors.

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Until poll(2) reports one of `events` (or an error or the end) or the deadline passes; false when it passed.
bool wait_for_descriptor(int descriptor, short events, Deadline deadline);

// The same open file under another number, closed at exec. Throws Error{input_output}.
FileDescriptor duplicate(int descriptor);

}  // namespace holdfast::recovery
