#include "holdfast/base/system_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>

namespace holdfast {

int SystemCalls::open(const char* path, int flags, unsigned mode) {
  return ::open(path, flags, mode);
}

std::ptrdiff_t SystemCalls::pwrite(int descriptor, const void* bytes, std::size_t count, std::int64_t offset) {
  return ::pwrite(descriptor, bytes, count, offset);
}

std::ptrdiff_t SystemCalls::pread(int descriptor, void* bytes, std::size_t count, std::int64_t offset) {
  return ::pread(descriptor, bytes, count, offset);
}

std::ptrdiff_t SystemCalls::preadv(int descriptor, const iovec* places, int count, std::int64_t offset) {
  return ::preadv(descriptor, places, count, offset);
}

int SystemCalls::sync_file_range(int descriptor, std::int64_t offset, std::int64_t count, unsigned flags) {
  return ::sync_file_range(descriptor, offset, count, flags);
}

int SystemCalls::fsync(int descriptor) {
  return ::fsync(descriptor);
}

int SystemCalls::rename(const char* from, const char* to) {
  return ::rename(from, to);
}

int SystemCalls::unlink(const char* path) {
  return ::unlink(path);
}

int SystemCalls::mkdir(const char* path, unsigned mode) {
  return ::mkdir(path, mode);
}

}  // namespace holdfast
