#pragma once

// One owner at a time for a run directory: a watchdog with its replicas, or a command that changes what is in it. The
// kernel releases the lock when the last of them has ended, however it ended.

#include <optional>
#include <string>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// Creates the directory when it is missing, and locks DIRECTORY/lock. The lock is held until the last copy of the
// returned descriptor is closed, in this process or in one that inherited it. Waits until the deadline for an owner to
// leave. An owner that no longer lives has left replicas which are dying: they have until `of_a_dead_owner`, where it
// is given and later, since one that waits for a disk takes long to die. Throws Error{already_running} that names
// directory and owner, or another Error that names the directory.
FileDescriptor lock_run_directory(const std::string& directory, Deadline deadline,
                                  std::optional<Deadline> of_a_dead_owner = std::nullopt);

// True when DIRECTORY/lock is not the file of `lock`, which this process has taken: the directory or the file was
// removed while it was locked, and another owner has made its own. Also where file locks do not reach across hosts, and
// a process of another host has taken it since.
bool is_directory_taken_over(const FileDescriptor& lock, const std::string& directory);

// What only the process that locked the directory last has written there; empty if nobody has.
std::string owner_token(const std::string& directory);
// That of this process, which no other has.
const std::string& token_of_this_process();

}  // namespace holdfast::recovery
