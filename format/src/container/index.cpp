// Writes and reads the index. Its digest shows that it is undamaged, not who wrote it, so the decoder
// checks every number. It accepts only what our encoder can write: offsets, for example, must follow from
// the order and the sizes. See docs/format.md and docs/decisions/savepoint-file.md.

#include "container/index.h"

#include <fmt/format.h>

#include <algorithm>

#include "container/byte_order.h"
#include "container/chunk.h"
#include "container/chunk_codec.h"
#include "container/names.h"
#include "container/user_block.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

// The number of a type in the file is its position here, as docs/format.md specifies.
constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                             DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

// Sizes of docs/format.md. They bound the counts that an index may claim.
constexpr std::size_t kHeadBytes = 40;
constexpr std::size_t kFixedRecordBytes = 2 + 4 + 8 + 16 + 4;  // for one array, without name, shape and pieces
constexpr std::size_t kPieceRecordBytes = 20;

// The enumerators of DType may be reordered; the numbers in files may not.
std::uint8_t dtype_number(DType dtype) {
  const auto* found = std::find(std::begin(kDTypes), std::end(kDTypes), dtype);
  HOLDFAST_ASSERT(found != std::end(kDTypes));
  return static_cast<std::uint8_t>(found - std::begin(kDTypes));
}

// The order of the fields is that of docs/format.md, and that of Decoder::record().
void append_record(std::vector<std::byte>& bytes, const IndexedArray& array) {
  append(bytes, static_cast<std::uint16_t>(array.info.name.size()));
  append(bytes, std::string_view(array.info.name));
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
  Decoder(const std::string& path, std::span<const std::byte> bytes)
      : path_(path), bytes_(bytes, [this] { fail("ends in the middle of an array"); }) {}

  Index decode(std::uint64_t index_offset) {
    require(bytes_.left() >= kHeadBytes, "is too short");
    const auto count = bytes_.integer<std::uint32_t>();
    require(bytes_.integer<std::uint32_t>() == 0, "has bits that this version does not know");
    Index index;
    index.hdf5_offset = bytes_.integer<std::uint64_t>();
    index.hdf5_bytes = bytes_.integer<std::uint64_t>();
    index.structure = bytes_.digest();
    // The count is limited by the bytes of the index before memory is reserved for it.
    require(count >= 1 && count - 1 <= bytes_.left() / kFixedRecordBytes, "counts more arrays than it holds");
    index.metadata = record();
    index.arrays.reserve(count - 1);
    for (std::uint32_t i = 1; i < count; ++i) {
      index.arrays.push_back(record());
      const std::string& name = index.arrays.back().info.name;
      require(name != kMetadataName, "gives an array the name of the metadata");
      require(i == 1 || index.arrays[i - 2].info.name < name, "is not sorted by name");
    }
    require(bytes_.left() == 0, "goes on after its last array");
    check_places(index, index_offset);
    return index;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    fail_not_allowed(path_, fmt::format("its index {}", problem));
  }

  void require(bool condition, const std::string& problem) const {
    if (!condition) fail(problem);
  }

  // Reads what append_record() wrote. A name goes into a sentence only after it was found valid.
  IndexedArray record() {
    IndexedArray array;
    array.info.name = bytes_.text(bytes_.integer<std::uint16_t>());
    require(is_valid_name(array.info.name), "holds an array without a valid name");
    const auto dtype = bytes_.integer<std::uint8_t>();
    require(dtype < std::size(kDTypes), fmt::format("gives {} an unknown element type", array.info.name));
    array.info.dtype = kDTypes[dtype];
    const auto storage = bytes_.integer<std::uint8_t>();
    require(storage <= static_cast<std::uint8_t>(Storage::zstd),
            fmt::format("stores {} in an unknown way", array.info.name));
    array.info.storage = static_cast<Storage>(storage);
    const auto axes = bytes_.integer<std::uint8_t>();
    require(axes <= kMaxAxes, fmt::format("gives {} too many axes", array.info.name));
    require(bytes_.integer<std::uint8_t>() == 0, "has bits that this version does not know");
    for (std::size_t axis = 0; axis < axes; ++axis) array.info.shape.push_back(bytes_.integer<std::uint64_t>());
    array.offset = bytes_.integer<std::uint64_t>();
    array.info.digest = bytes_.digest();
    read_pieces(array);
    return array;
  }

  void read_pieces(IndexedArray& array) {
    const std::string& name = array.info.name;
    std::uint64_t bytes = 0;
    require(multiply_shape(array.info.shape, size_bytes(array.info.dtype), bytes),
            fmt::format("{} exceeds 64 bits", name));
    // One content has one form: the writer never compresses small arrays.
    require(array.info.storage == Storage::contiguous || bytes > kMaxUncompressedBytes,
            fmt::format("compresses {}, which is too small for that", name));
    // The pieces follow from the shape, so the count of the file is only compared with the right one.
    const PieceSizes sizes = piece_sizes(array.info);
    const auto count = bytes_.integer<std::uint32_t>();
    require(count == sizes.count && count <= bytes_.left() / kPieceRecordBytes,
            fmt::format("cuts {} into a wrong number of pieces", name));
    array.pieces.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto stored_bytes = bytes_.integer<std::uint32_t>();
      const std::size_t piece_bytes = i + 1 == count ? sizes.last_bytes : sizes.bytes;
      // A piece that is too small for its chunk would make the decoder allocate much for few bytes.
      const bool fits = array.info.storage == Storage::contiguous
                            ? stored_bytes == piece_bytes
                            : stored_bytes >= min_frame_bytes(piece_bytes) && stored_bytes <= 2 * kMaxChunkBytes;
      if (!fits) fail(fmt::format("gives a piece of {} an impossible size", name));
      array.pieces.push_back({stored_bytes, bytes_.digest()});
    }
  }

  void check_places(Index& index, std::uint64_t index_offset) const {
    const IndexedArray& metadata = index.metadata;
    require(metadata.info.name == kMetadataName && metadata.info.dtype == DType::u8 &&
                metadata.info.storage == Storage::contiguous && metadata.info.shape.size() == 1,
            "has no metadata");
    // Kept, since place_pieces() overwrites them.
    std::vector<std::uint64_t> offsets{metadata.offset};
    for (const IndexedArray& array : index.arrays) offsets.push_back(array.offset);
    // Computes all offsets from the sizes and compares them with those of the file.
    const std::uint64_t end = place_pieces(index);
    const bool are_right =
        offsets.front() == metadata.offset &&
        std::equal(index.arrays.begin(), index.arrays.end(), offsets.begin() + 1,
                   [](const IndexedArray& array, std::uint64_t given) { return array.offset == given; });
    require(are_right && index.hdf5_offset == end, "puts arrays at wrong offsets");
    require(index_offset >= end && index.hdf5_bytes == index_offset - end, "does not reach from the data to the end");
  }

  const std::string& path_;
  ByteReader bytes_;
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
  // An array without elements has no pieces, and its offset is that of the next array.
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
  // Reserved; decode() refuses other bits, so that a later version can give them a meaning.
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
