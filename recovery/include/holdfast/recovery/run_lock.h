#pragma once

// One owner at a time for a run directory: the watchdog with its replicas, or a command that changes what is in it.

#include <string>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Creates the directory when missing and locks DIRECTORY/lock until the last copy of the returned descriptor, in this
// process or one that inherited it, is closed. Waits until the deadline for an owner to go: replicas of a killed
// watchdog take a moment to die. Throws Error{already_running} naming directory and owner, or another Error naming the
// directory.
FileDescriptor lock_run_directory(const std::string& directory, Deadline deadline);

// Whether DIRECTORY/lock is not the file of `lock`: the directory or the file was removed while it was locked, and
// another owner has made its own.
bool is_directory_taken_over(const FileDescriptor& lock, const std::string& directory);

}  // namespace holdfast::recovery
