#pragma once

// Lets one process at a time make a file of a folder, while others wait for it. It only saves work: files appear whole,
// so nothing breaks where a file system has no locks.

#include <chrono>
#include <memory>
#include <string>

#include "holdfast/base/deadline.h"
#include "holdfast/base/file_system.h"

namespace holdfast {

class FolderLock {
 public:
  // Waits until no other process has the lock of this folder, until the deadline, or not at all if the folder cannot be
  // locked.
  FolderLock(const std::string& folder, Deadline deadline);
  // The kernel does the same for a process that dies.
  ~FolderLock();
  // Whether another process had it until the deadline.
  bool is_taken() const { return is_taken_; }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
  bool is_taken_ = false;
};

// How long a process waits for the file of another one, unless a user says so. A process that waits makes no progress,
// and this is less than RecoveryOptions::start_timeout.
inline constexpr std::chrono::seconds kFileWait(60);

// A lock of the folder in which a file is to be made, or null if the file is there. Look for the file again then: the
// process that had the lock has mostly made it. After `wait` the caller makes it as well.
std::unique_ptr<FolderLock> lock_unless_there(FileSystem& files, const std::string& path,
                                              std::chrono::milliseconds wait = kFileWait);

}  // namespace holdfast
