#pragma once

// A file of memory that has given bytes, for readers that take the path of a file.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    HOLDFAST_ASSERT(file_ >= 0);
    HOLDFAST_ASSERT(std::cmp_equal(::write(file_, bytes.data(), bytes.size()), bytes.size()));
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace holdfast::fuzz
