// Reads ZIP files and decompresses all members.

#include "fuzz_input.h"
#include "zip/zip.h"

using namespace holdfast;
using namespace holdfast::format;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source("a", std::as_bytes(std::span(data, size)));
  std::vector<ZipEntry> entries;
  if (!fuzz::succeeds([&] { entries = ZipReader(source).entries(); })) return 0;
  const ZipReader reader(source);
  for (const ZipEntry& entry : entries) {
    HOLDFAST_ASSERT(entry.data_offset <= size && entry.stored_bytes <= size - entry.data_offset);
    HOLDFAST_ASSERT(problem_of_member_name(entry.name).empty());
    // One damaged member must not hide the next.
    fuzz::succeeds([&] { HOLDFAST_ASSERT(reader.read(entry).size() == entry.size_bytes); });
  }
  return 0;
}
