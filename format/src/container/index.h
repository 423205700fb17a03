#pragma once

// Where everything in a file is, so that a reader needs only this and pread, and nothing of HDF5.
// docs/format.md specifies the bytes.
//
// The order in a file: header, HDF5's superblock (both before kDataOffset), the pieces of all arrays,
// HDF5's other structures, the index. Offsets follow from the order and the sizes, so they cannot
// contradict each other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/format/array_info.h"

namespace holdfast::format {

inline constexpr std::uint64_t kDataOffset = 4096;
// Every piece begins at a multiple of it. The bytes between two pieces are zero.
inline constexpr std::uint64_t kAlignment = 64;

// Arrays up to this size are stored uncompressed: HDF5's index of chunks (2 KiB) takes more than
// compression gains.
inline constexpr std::uint64_t kMaxUncompressedBytes = 4096;

constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// A part of an array that is stored, digested and read on its own.
struct Piece {
  std::uint32_t stored_bytes;
  Digest digest;  // of the stored bytes
};

struct IndexedArray {
  ArrayInfo info;
  std::uint64_t offset = 0;  // of its first piece
  std::vector<Piece> pieces;
};

struct Index {
  IndexedArray metadata;             // bytes of JSON, as an array of u8
  std::vector<IndexedArray> arrays;  // sorted by name
  std::uint64_t hdf5_offset = 0;     // of HDF5's structures, between the pieces and the index
  std::uint64_t hdf5_bytes = 0;
  Digest structure;  // of the bytes [kUserBlockBytes, kDataOffset) followed by HDF5's structures
};

// The number and the uncompressed sizes of the pieces that an array is cut into.
struct PieceSizes {
  std::uint64_t count = 0;
  std::size_t bytes = 0;       // of each piece except the last one
  std::size_t last_bytes = 0;  // of the last one; a chunk is always full
};
PieceSizes piece_sizes(const ArrayInfo& info);

// Sets all offsets and stored_bytes from the sizes of the pieces. Returns the offset at which they end.
std::uint64_t place_pieces(Index& index);

std::vector<std::byte> encode_index(const Index& index);

// Decodes an index that lies at `index_offset` of the file, after everything else. Its digest was checked,
// but its writer may be anybody, so every number is checked here. Takes memory in proportion to `bytes`
// only. Throws Error{invalid_file}.
Index decode_index(const std::string& path, std::span<const std::byte> bytes, std::uint64_t index_offset);

}  // namespace holdfast::format
