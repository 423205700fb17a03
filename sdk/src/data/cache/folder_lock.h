#pragma once

// Lets one process at a time make a file of a folder, while others wait for it. It only saves work: files appear whole,
// so nothing breaks where a file system has no locks.

#include <string>

#include "holdfast/base/deadline.h"

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

}  // namespace holdfast
