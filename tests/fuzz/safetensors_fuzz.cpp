// Reads safetensors files. For arrays that were accepted, our own header must describe the same arrays.

#include "fuzz_input.h"
#include "holdfast/format/exchange/safetensors.h"
#include "safetensors/safetensors_header.h"

using namespace holdfast;
using namespace holdfast::format;

static void check(const ArraySet& set) {
  std::vector<ArrayView> arrays = views(set.arrays);
  sort_for_safetensors(arrays);
  std::uint64_t bytes = 0;
  for (const ArrayView& array : arrays) bytes += array.bytes.size();
  const SafetensorsHeader header = parse_safetensors_header("a", compose_safetensors_header({}, arrays), bytes);
  HOLDFAST_ASSERT(header.entries.size() == arrays.size());
  std::uint64_t sum = 0;
  for (const SafetensorsEntry& entry : header.entries) sum += entry.end - entry.begin;
  HOLDFAST_ASSERT(sum == bytes);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ArraySet set;
  if (!fuzz::succeeds([&] { set = parse_safetensors(std::as_bytes(std::span(data, size)), "a"); })) return 0;
  check(set);
  return 0;
}
