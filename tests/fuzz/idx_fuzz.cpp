// Reads IDX files, plain and compressed by gzip. One that was accepted has as many elements as its header promises.

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "data/sources/idx_file.h"
#include "fuzz_input.h"

using namespace holdfast;

// A file of memory that has these bytes, since zlib reads files alone.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("idx", MFD_CLOEXEC)) {
    HOLDFAST_ASSERT(file_ >= 0);
    HOLDFAST_ASSERT(std::cmp_equal(::write(file_, data, size), size));
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  fuzz::succeeds([&] {
    const IdxFile idx = read_idx_file(file.path());
    HOLDFAST_ASSERT(std::cmp_equal(idx.elements.size(), idx.shape.element_count()));
  });
  return 0;
}
