// Checks what is to be written before any byte is, and writes what surrounds the pieces. A file that the
// reader would refuse must never be made, so both sides have the same rules: names.h, shape_bytes.h and
// docs/format.md. The index and its digests: docs/decisions/savepoint-file.md.

#include "array_files/array_content.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "container/names.h"
#include "container/user_block.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"
#include "view/view_writer.h"

namespace holdfast::format {
namespace {

// Every refusal names the file, because a run may write several at once.
[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cannot write {}: {}", path, problem));
}

void check_array(const std::string& path, const ArrayView& array) {
  if (!is_utf8(array.name)) refuse(path, "the name of an array is not UTF-8 text; rename the array");
  const std::string label = fmt::format("array {}", quoted_text(array.name));
  if (!is_valid_name(array.name)) {
    refuse(path,
           fmt::format("{} has no valid name; use 1 to {} bytes, in up to {} parts separated by '/'; no part may be "
                       "empty, \".\" or \"..\"",
                       label, kMaxNameBytes, kMaxNameParts));
  }
  if (array.shape.size() > kMaxAxes) {
    refuse(path, fmt::format("{} has {} axes, and the format allows at most {}; give it another shape", label,
                             array.shape.size(), kMaxAxes));
  }
  std::uint64_t bytes = 0;
  if (!multiply_shape(array.shape, size_bytes(array.dtype), bytes) || bytes != array.bytes.size()) {
    refuse(path, fmt::format("{} comes with {} bytes, and its shape takes {} bytes; pass all its elements", label,
                             array.bytes.size(), bytes));
  }
}

// Each name belongs to one array or to one group of arrays.
void check_names(const std::string& path, std::span<const ArrayView> arrays) {
  std::set<std::string_view> names{kMetadataName};
  for (const ArrayView& array : arrays) {
    if (!names.insert(array.name).second) {
      refuse(path, fmt::format("the name {} is taken; rename one of the arrays (\"metadata\" is not an array)",
                               quoted_text(array.name)));
    }
  }
  // HDF5 cannot have an array and a group of one name, so no array may be inside another one.
  for (const ArrayView& array : arrays) {
    const std::string_view name = array.name;
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
      if (names.contains(name.substr(0, slash))) {
        refuse(path, fmt::format("{} would lie inside the array {}; rename one of them", quoted_text(array.name),
                                 quoted_text(name.substr(0, slash))));
      }
    }
  }
}

void check_arguments(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays,
                     const WriteOptions& options) {
  // The JSON library takes a NUL for the end of its input, and HDF5's readers take it for padding.
  if (metadata_json.find('\0') != std::string_view::npos || !nlohmann::json::accept(metadata_json))
    refuse(path, "the metadata is not JSON; give a JSON text");
  if (options.zstd_level < ZSTD_minCLevel() || options.zstd_level > ZSTD_maxCLevel()) {
    refuse(path, fmt::format("zstd has no level {}; choose 1 to {}", options.zstd_level, ZSTD_maxCLevel()));
  }
  if (options.threads < 0)
    refuse(path, fmt::format("{} threads are not possible; use 0 for all cores, or more", options.threads));
  for (const ArrayView& array : arrays) check_array(path, array);
  check_names(path, arrays);
}

}  // namespace

ArrayContent::ArrayContent(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays,
                           const WriteOptions& options)
    : sorted(arrays.begin(), arrays.end()) {
  check_arguments(path, metadata_json, arrays, options);
  metadata = {std::string(kMetadataName), DType::u8, {metadata_json.size()}, std::as_bytes(std::span(metadata_json))};
  std::sort(sorted.begin(), sorted.end(), [](const ArrayView& a, const ArrayView& b) { return a.name < b.name; });
}

Digest write_structure(File& file, const std::string& path, Index index, const WriteOptions& options) {
  // The filter that the file names has zstd's level as its parameter. Frames of literals have no level, and
  // the file states 1.
  const int shown_level = options.compression == Compression::zstd ? options.zstd_level : 1;
  Hdf5View view = compose_view(path, index, shown_level);
  view.superblock.resize(kDataOffset - kUserBlockBytes);
  index.hdf5_bytes = view.structures.size();
  DigestBuilder structure;
  structure.update(view.superblock);
  structure.update(view.structures);
  index.structure = structure.finish();
  const std::vector<std::byte> encoded = encode_index(index);
  const std::uint64_t index_offset = index.hdf5_offset + index.hdf5_bytes;
  file.write_at(kUserBlockBytes, view.superblock);
  file.write_at(index.hdf5_offset, view.structures);
  file.write_at(index_offset, encoded);
  // The index lies at the end: its size depends on the pieces, and theirs is known only when they are encoded.
  const UserBlock block{.file_bytes = index_offset + encoded.size(),
                        .index_offset = index_offset,
                        .index_bytes = encoded.size(),
                        .index_digest = digest(encoded)};
  file.write_at(0, encode(block));
  return block.index_digest;
}

}  // namespace holdfast::format
