#pragma once

// The system calls below posix_file_system(). Tests replace single calls with ones that fail, are
// interrupted or do half of the work, and so exercise the code above as a real system would. No other
// code needs this.
//
//   struct Interrupted : SystemCalls {
//     int fsync(int) override { errno = EINTR; return -1; }
//   };

#include <cstddef>
#include <cstdint>
#include <memory>

#include "holdfast/base/file_system.h"

struct iovec;  // of <sys/uio.h>

namespace holdfast {

// Each function makes the system call of its name and returns its result: negative, with errno set,
// after a failure. Several threads may call at once.
class SystemCalls {
 public:
  virtual ~SystemCalls() = default;

  virtual int open(const char* path, int flags, unsigned mode);  // of a file or a folder
  // May write less than `count`.
  virtual std::ptrdiff_t pwrite(int descriptor, const void* bytes, std::size_t count, std::int64_t offset);
  // May read less than `count`.
  virtual std::ptrdiff_t pread(int descriptor, void* bytes, std::size_t count, std::int64_t offset);
  // Reads into `count` places one after the other; may read less than there is room for.
  virtual std::ptrdiff_t preadv(int descriptor, const iovec* places, int count, std::int64_t offset);
  // A hint to begin writing; Linux alone has it.
  virtual int sync_file_range(int descriptor, std::int64_t offset, std::int64_t count, unsigned flags);
  virtual int fsync(int descriptor);                     // of a file or a folder
  virtual int rename(const char* from, const char* to);  // replaces `to`
  virtual int unlink(const char* path);                  // a file, not a folder
  virtual int mkdir(const char* path, unsigned mode);    // in a folder that exists
};

// The operating system's files, reached through `calls`, which must outlive the file system and its
// files.
std::unique_ptr<FileSystem> posix_file_system(SystemCalls& calls);

}  // namespace holdfast
