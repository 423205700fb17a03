#include "data/kept/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace holdfast {
namespace {

// Short next to what the lock saves, which is the pass of a model over all samples.
constexpr std::chrono::milliseconds kFolderRetryPeriod(10);

}  // namespace

FolderLock::FolderLock(const std::string& folder, Deadline deadline)
    // Not inherited: a program that this process starts must not hold the lock after its end.
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // flock(2) knows no deadline.
  while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    // Any other error means a file system without locks. Then the caller goes on without one, as the header promises.
    const bool may_come = errno == EWOULDBLOCK || errno == EINTR;
    is_taken_ = may_come && deadline.has_passed();
    if (!may_come || is_taken_) return;
    std::this_thread::sleep_for(kFolderRetryPeriod);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::unique_ptr<FolderLock> lock_unless_there(FileSystem& files, const std::string& path,
                                              std::chrono::milliseconds wait) {
  if (files.exists(path)) return nullptr;
  return std::make_unique<FolderLock>(parent_folder(path), Deadline::after(wait));
}

}  // namespace holdfast
