// Reads IDX files, plain and compressed by gzip. One that was accepted has as many elements as its header promises.

#include <utility>

#include "data/sources/idx_file.h"
#include "fuzz_input.h"
#include "memory_file.h"

using namespace holdfast;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // zlib reads files alone.
  const fuzz::MemoryFile file({data, size});
  fuzz::succeeds([&] {
    const IdxFile idx = read_idx_file(file.path(), {.bytes = std::int64_t{1} << 20, .option = "IdxOptions::max_bytes"});
    HOLDFAST_ASSERT(std::cmp_equal(idx.elements.size(), idx.shape.element_count()));
  });
  return 0;
}
