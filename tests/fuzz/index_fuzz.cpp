// Reads the index of an array file. There is only one way to write an index, so bytes that were accepted must equal the
// encoding of their content.

#include "container/index.h"

#include <algorithm>

#include "fuzz_input.h"

using namespace holdfast;
using namespace holdfast::format;

static std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= std::to_integer<std::uint64_t>(bytes[offset + i]) << (8 * i);
  }
  return number;
}

// The index must begin where HDF5's structures end, and it contains that offset. No mutation would find the number.
static std::uint64_t own_offset(std::span<const std::byte> bytes) {
  return bytes.size() < 24 ? 0 : number_at(bytes, 8) + number_at(bytes, 16);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  Index index;
  if (!fuzz::succeeds([&] { index = decode_index("a", bytes, own_offset(bytes)); })) return 0;
  HOLDFAST_ASSERT(std::ranges::equal(encode_index(index), bytes));
  return 0;
}
