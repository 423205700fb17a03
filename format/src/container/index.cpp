// Writes and reads the index. Its digest shows that it is undamaged, not who wrote it, so the decoder
// checks every number. It accepts only what our encoder can write: offsets, for example, must follow from
// the order and the sizes. See docs/format.md and docs/decisions/savepoints.md.

#include "container/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "container/byte_order.h"
#include "container/chunk.h"
#include "container/chunk_codec.h"
#include "container/names.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

// The number of a type in the file is its position here, as docs/format.md specifies.
constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                             DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

constexpr std::size_t kHeadBytes = 40;
constexpr std::size_t kFixedRecordBytes = 2 + 4 + 8 + 16 + 4;  // for one array, without name, shape and pieces
constexpr std::size_t kPieceRecordBytes = 20;

std::uint8_t dtype_number(DType dtype) {
  const auto* found = std::find(std::begin(kDTypes), std::end(kDTypes), dtype);
  HOLDFAST_ASSERT(found != std::end(kDTypes));
  return static_cast<std::uint8_t>(found - std::begin(kDTypes));
}

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void append_record(std::vector<std::byte>& bytes, const IndexedArray& array) {
  append(bytes, static_cast<std::uint16_t>(array.info.name.size()));
  append_text(bytes, array.info.name);
  append(bytes, dtype_number(array.info.dtype));
  append(bytes, static_cast<std::uint8_t>(array.info.storage));
  append(bytes, static_cast<std::uint8_t>(array.info.shape.size()));
  append(bytes, std::uint8_t{0});
  for (const std::uint64_t extent : array.info.shape) append(bytes, extent);
  append(bytes, array.offset);
  append(bytes, array.info.digest);
  append(bytes, static_cast<std::uint32_t>(array.pieces.size()));
  for (const Piece& piece : array.pieces) {
    append(bytes, piece.stored_bytes);
    append(bytes, piece.digest);
  }
}

// Walks through the bytes of the index and refuses what no writer of ours writes.
class Decoder {
 public:
  Decoder(const std::string& path, std::span<const std::byte> bytes) : path_(path), rest_(bytes) {}

  Index decode(std::uint64_t index_offset) {
    require(rest_.size() >= kHeadBytes, "is too short");
    const auto count = integer<std::uint32_t>();
    require(integer<std::uint32_t>() == 0, "has bits that this version does not know");
    Index index;
    index.hdf5_offset = integer<std::uint64_t>();
    index.hdf5_bytes = integer<std::uint64_t>();
    index.structure = take_digest(take_bytes(sizeof(Digest)), 0);
    // The count is limited by the bytes of the index before memory is reserved for it.
    require(count >= 1 && count - 1 <= rest_.size() / kFixedRecordBytes, "counts more arrays than it holds");
    index.metadata = record();
    index.arrays.reserve(count - 1);
    for (std::uint32_t i = 1; i < count; ++i) index.arrays.push_back(array_record(index));
    require(rest_.empty(), "goes on after its last array");
    check_places(index, index_offset);
    return index;
  }

 private:
  void require(bool condition, const std::string& problem) const {
    if (condition) return;
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is undamaged but not what the format allows: its index {}; write it again with "
                            "Holdfast, or use another file",
                            path_, problem));
  }

  std::span<const std::byte> take_bytes(std::size_t count) {
    require(count <= rest_.size(), "ends in the middle of an array");
    const std::span<const std::byte> bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  template <typename Integer>
  Integer integer() {
    return take<Integer>(take_bytes(sizeof(Integer)), 0);
  }

  std::string text(std::size_t count) {
    const std::span<const std::byte> bytes = take_bytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  IndexedArray record() {
    IndexedArray array;
    array.info.name = text(integer<std::uint16_t>());
    require(is_valid_name(array.info.name), "holds an array without a valid name");
    const auto dtype = integer<std::uint8_t>();
    require(dtype < std::size(kDTypes), "gives " + array.info.name + " an unknown element type");
    array.info.dtype = kDTypes[dtype];
    const auto storage = integer<std::uint8_t>();
    require(storage <= static_cast<std::uint8_t>(Storage::zstd), "stores " + array.info.name + " in an unknown way");
    array.info.storage = static_cast<Storage>(storage);
    const auto axes = integer<std::uint8_t>();
    require(axes <= kMaxAxes, "gives " + array.info.name + " too many axes");
    require(integer<std::uint8_t>() == 0, "has bits that this version does not know");
    for (std::size_t axis = 0; axis < axes; ++axis) array.info.shape.push_back(integer<std::uint64_t>());
    array.offset = integer<std::uint64_t>();
    array.info.digest = take_digest(take_bytes(sizeof(Digest)), 0);
    read_pieces(array);
    return array;
  }

  void read_pieces(IndexedArray& array) {
    const std::string& name = array.info.name;
    std::uint64_t bytes = 0;
    require(multiply_shape(array.info.shape, size_bytes(array.info.dtype), bytes), name + " exceeds 64 bits");
    // One content has one form: the writer never compresses small arrays.
    require(array.info.storage == Storage::contiguous || bytes > kMaxUncompressedBytes,
            "compresses " + name + ", which is too small for that");
    const PieceSizes sizes = piece_sizes(array.info);
    const auto count = integer<std::uint32_t>();
    require(count == sizes.count && count <= rest_.size() / kPieceRecordBytes,
            "cuts " + name + " into a wrong number of pieces");
    array.pieces.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto stored_bytes = integer<std::uint32_t>();
      const std::size_t piece_bytes = i + 1 == count ? sizes.last_bytes : sizes.bytes;
      const bool fits = array.info.storage == Storage::contiguous
                            ? stored_bytes == piece_bytes
                            : stored_bytes >= min_frame_bytes(piece_bytes) && stored_bytes <= 2 * kMaxChunkBytes;
      require(fits, "gives a piece of " + name + " an impossible size");
      array.pieces.push_back({stored_bytes, take_digest(take_bytes(sizeof(Digest)), 0)});
    }
  }

  IndexedArray array_record(const Index& index) {
    IndexedArray array = record();
    require(array.info.name != kMetadataName, "gives an array the name of the metadata");
    require(index.arrays.empty() || index.arrays.back().info.name < array.info.name, "is not sorted by name");
    return array;
  }

  void check_places(Index& index, std::uint64_t index_offset) const {
    const IndexedArray& metadata = index.metadata;
    require(metadata.info.name == kMetadataName && metadata.info.dtype == DType::u8 &&
                metadata.info.storage == Storage::contiguous && metadata.info.shape.size() == 1,
            "has no metadata");
    std::vector<std::uint64_t> offsets{metadata.offset};
    for (const IndexedArray& array : index.arrays) offsets.push_back(array.offset);
    // Computes all offsets from the sizes and compares them with those of the file.
    const std::uint64_t end = place_pieces(index);
    bool are_right = offsets[0] == metadata.offset;
    for (std::size_t i = 0; i < index.arrays.size(); ++i) {
      are_right = are_right && offsets[i + 1] == index.arrays[i].offset;
    }
    require(are_right && index.hdf5_offset == end, "puts arrays at wrong offsets");
    require(index_offset >= end && index.hdf5_bytes == index_offset - end, "does not reach from the data to the end");
  }

  const std::string& path_;
  std::span<const std::byte> rest_;
};

std::uint64_t place(IndexedArray& array, std::uint64_t offset) {
  array.offset = offset;
  array.info.stored_bytes = 0;
  for (const Piece& piece : array.pieces) {
    array.info.stored_bytes += piece.stored_bytes;
    offset = aligned(offset + piece.stored_bytes);
  }
  return offset;
}

}  // namespace

PieceSizes piece_sizes(const ArrayInfo& info) {
  const std::uint64_t bytes = size_bytes(info);
  if (info.storage == Storage::zstd) {
    const ChunkGrid grid(info.shape, size_bytes(info.dtype));
    return {grid.count(), grid.chunk_bytes(), grid.chunk_bytes()};
  }
  if (bytes == 0) return {};
  const std::uint64_t count = (bytes - 1) / kMaxChunkBytes + 1;
  return {count, kMaxChunkBytes, static_cast<std::size_t>(bytes - (count - 1) * kMaxChunkBytes)};
}

std::uint64_t place_pieces(Index& index) {
  std::uint64_t offset = place(index.metadata, kDataOffset);
  for (IndexedArray& array : index.arrays) offset = place(array, offset);
  return offset;
}

std::vector<std::byte> encode_index(const Index& index) {
  std::vector<std::byte> bytes;
  append(bytes, static_cast<std::uint32_t>(index.arrays.size() + 1));
  append(bytes, std::uint32_t{0});
  append(bytes, index.hdf5_offset);
  append(bytes, index.hdf5_bytes);
  append(bytes, index.structure);
  append_record(bytes, index.metadata);
  for (const IndexedArray& array : index.arrays) append_record(bytes, array);
  return bytes;
}

Index decode_index(const std::string& path, std::span<const std::byte> bytes, std::uint64_t index_offset) {
  return Decoder(path, bytes).decode(index_offset);
}

}  // namespace holdfast::format
