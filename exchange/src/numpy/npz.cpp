// An .npz file is a ZIP archive of .npy files. Metadata that NumPy has no place for is a further member, which
// numpy.load() lists but does not parse.

#include "holdfast/format/exchange/npz.h"

#include <algorithm>
#include <array>
#include <set>

#include "bytes/array_checks.h"
#include "holdfast/base/error.h"
#include "numpy/npy.h"
#include "numpy/npz_file.h"
#include "zip/zip.h"

namespace holdfast::format {
namespace {

ArraySet read_npz_from(ByteSource& source) {
  const NpzFile file(source);
  ArraySet set{.arrays = {}, .metadata = file.metadata()};
  for (const NpzFile::Entry& entry : file.entries()) set.arrays.push_back(file.read(entry));
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
  // Equal arrays must give equal bytes, in whatever order the caller has them.
  std::ranges::sort(sorted, {}, &ArrayView::name);

  ZipWriter writer(files, path);
  // Without metadata the archive is exactly what numpy.savez() would hold.
  if (metadata_json != "{}") {
    const std::array pieces = {std::as_bytes(std::span(metadata_json))};
    writer.add(kNpzMetadataMember, pieces);
  }
  for (const ArrayView& array : sorted) {
    const std::vector<std::byte> header = compose_npy_header(array);
    // Header and elements are two pieces of one member, so the elements are not copied.
    const std::array<std::span<const std::byte>, 2> pieces = {header, array.bytes};
    writer.add(array.name + std::string(kNpySuffix), pieces);
  }
  writer.commit();
}

}  // namespace holdfast::format
