#pragma once

// Helpers for file descriptors, for channels, processes and locks.

#include <utility>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Blocks until poll(2) reports one of `events`, an error or the end, or until the deadline. False when the deadline
// passed.
bool wait_for_descriptor(int descriptor, short events, Deadline deadline);

// Two ends of a connection that keeps packets whole. Neither has the number of a standard stream. Throws
// Error{input_output}: "cannot create WHAT".
std::pair<FileDescriptor, FileDescriptor> connected_sockets(const char* what);

// The same open file under another number, closed at exec. Throws Error{input_output}.
FileDescriptor duplicate(int descriptor);

}  // namespace holdfast::recovery
