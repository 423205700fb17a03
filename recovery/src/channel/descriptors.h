#pragma once

// Helpers for file descriptors, for channels, processes and locks.

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Blocks until poll(2) reports one of `events`, an error or the end, or until the deadline. False when the deadline
// passed.
bool wait_for_descriptor(int descriptor, short events, Deadline deadline);

// The same open file under another number, closed at exec. Throws Error{input_output}.
FileDescriptor duplicate(int descriptor);

}  // namespace holdfast::recovery
