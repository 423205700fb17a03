// Reads .npy files. For an array that was accepted, our own header must describe the same array.

#include "fuzz_input.h"
#include "holdfast/base/shape_bytes.h"
#include "numpy/npy.h"

using namespace holdfast;
using namespace holdfast::format;

static void check(const NamedArray& array) {
  std::uint64_t bytes = 0;
  HOLDFAST_ASSERT(multiply_shape(array.shape, size_bytes(array.dtype), bytes) && bytes == array.bytes.size());
  const std::vector<std::byte> head = compose_npy_header({array.name, array.dtype, array.shape, array.bytes});
  const NpyHeader header = parse_npy_header("a", "b", head);
  HOLDFAST_ASSERT(header.dtype == array.dtype && header.shape == array.shape && header.data_offset == head.size());
  HOLDFAST_ASSERT(!header.is_fortran && !header.is_big_endian);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  NamedArray array;
  if (!fuzz::succeeds([&] { array = parse_npy("a", "b", {bytes.begin(), bytes.end()}); })) return 0;
  check(array);
  return 0;
}
