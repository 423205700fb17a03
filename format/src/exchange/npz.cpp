#include "holdfast/format/exchange/npz.h"

#include <algorithm>
#include <array>
#include <set>

#include "exchange/array_checks.h"
#include "exchange/npy.h"
#include "exchange/zip.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr std::string_view kNpySuffix = ".npy";
constexpr const char* kMetadataMember = "holdfast.metadata.json";

std::string metadata_of(const std::string& path, const std::vector<std::byte>& bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_json(text)) refuse_file(path, "has metadata of Holdfast that is not JSON; use another copy of it");
  return text;
}

ArraySet read_npz_from(ByteSource& source) {
  const std::string& path = source.path();
  const ZipReader reader(source);
  ArraySet set;
  for (const ZipEntry& entry : reader.entries()) {
    if (entry.name == kMetadataMember) {
      set.metadata = metadata_of(path, reader.read(entry));
    } else if (entry.name.ends_with(kNpySuffix)) {
      const std::string name = entry.name.substr(0, entry.name.size() - kNpySuffix.size());
      set.arrays.push_back(parse_npy(path, name, reader.read(entry)));
    } else {
      refuse_file(path, "has a member " + shown(entry.name) + ", which is no array; remove it from the archive");
    }
  }
  std::sort(set.arrays.begin(), set.arrays.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  return set;
}

}  // namespace

ArraySet read_npz(FileSystem& files, const std::string& path) {
  FileSource source(files, path);
  return within_memory(path, [&] { return read_npz_from(source); });
}

ArraySet parse_npz(std::span<const std::byte> bytes, const std::string& name) {
  MemorySource source(name, bytes);
  return read_npz_from(source);
}

void write_npz(FileSystem& files, const std::string& path, std::string_view metadata_json,
               std::span<const ArrayView> arrays) {
  check_metadata(path, metadata_json);
  check_arrays(path, arrays);
  std::vector<ArrayView> sorted(arrays.begin(), arrays.end());
  std::sort(sorted.begin(), sorted.end(), [](const ArrayView& a, const ArrayView& b) { return a.name < b.name; });

  ZipWriter writer(files, path);
  if (metadata_json != "{}") {
    const std::array pieces = {std::as_bytes(std::span(metadata_json))};
    writer.add(kMetadataMember, pieces);
  }
  for (const ArrayView& array : sorted) {
    const std::vector<std::byte> header = compose_npy_header(array);
    const std::array<std::span<const std::byte>, 2> pieces = {header, array.bytes};
    writer.add(array.name + std::string(kNpySuffix), pieces);
  }
  writer.commit();
}

}  // namespace holdfast::format
