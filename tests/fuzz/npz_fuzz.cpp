// Reads .npz archives array by array, as a program that asks for some of them does. An array that was accepted has the
// elements that its shape needs, and lies in the file where the reader says.

#include <array>

#include "fuzz_input.h"
#include "holdfast/base/shape_bytes.h"
#include "numpy/npz_file.h"

using namespace holdfast;
using namespace holdfast::format;

static void check_array(MemorySource& source, const std::string& name) {
  const std::array<std::string, 1> names = {name};
  const NpzFile file(source, names);
  const NpzFile::Entry& entry = file.entries().at(0);
  const NamedArray array = file.read(entry);
  std::uint64_t bytes = 0;
  HOLDFAST_ASSERT(array.name == name && array.dtype == entry.header.dtype && array.shape == entry.header.shape);
  HOLDFAST_ASSERT(multiply_shape(array.shape, size_bytes(array.dtype), bytes) && bytes == array.bytes.size());
  const bool is_plain = !entry.member.is_deflated && !entry.header.is_fortran && !entry.header.is_big_endian;
  if (!is_plain || bytes == 0) return;
  std::vector<std::byte> in_file(bytes);
  source.read(entry.member.data_offset + entry.header.data_offset, in_file);
  HOLDFAST_ASSERT(in_file == array.bytes);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source("a", std::as_bytes(std::span(data, size)));
  std::vector<std::string> names;
  fuzz::succeeds([&] {
    const ZipReader archive(source);
    for (const ZipEntry& member : archive.entries()) {
      // A fuzzer finds archives of small members; what they may claim is bounded by the reader of archives.
      if (member.size_bytes > (1U << 20U) || !member.name.ends_with(kNpySuffix)) continue;
      names.push_back(member.name.substr(0, member.name.size() - kNpySuffix.size()));
    }
  });
  for (const std::string& name : names) fuzz::succeeds([&] { check_array(source, name); });
  return 0;
}
