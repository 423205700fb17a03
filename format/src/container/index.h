#pragma once

// Where everything in a file lies, so that a reader needs this, pread and nothing of HDF5. docs/format.md has the
// bytes.
//
// A file is: header, HDF5's superblock (both before kDataOffset), the pieces of all arrays, HDF5's other structures,
// the index. Positions follow from the order and the sizes: there is nothing to be contradicted.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

inline constexpr std::uint64_t kDataOffset = 4096;
// Every piece begins at a multiple of it; the bytes between are zero.
inline constexpr std::uint64_t kAlignment = 64;

// Arrays up to here are stored as they are: HDF5's index of chunks (2 KiB) costs more than compression gains.
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
  std::uint64_t hdf5_offset = 0;     // of HDF5's structures behind the pieces, up to the index
  std::uint64_t hdf5_bytes = 0;
  Digest structure;  // of the bytes [kUserBlockBytes, kDataOffset) and HDF5's structures, one after the other
};

// The number and the sizes of the pieces that an array is cut into, uncompressed.
struct PieceSizes {
  std::uint64_t count = 0;
  std::size_t bytes = 0;       // of each but the last of a contiguous array
  std::size_t last_bytes = 0;  //
};
PieceSizes piece_sizes(const ArrayInfo& info);

// Sets offsets and stored_bytes from the pieces' sizes. Returns where the pieces end.
std::uint64_t place_pieces(Index& index);

std::vector<std::byte> encode_index(const Index& index);

// `bytes` lie at `index_offset` of the file, behind everything else; their digest was checked, but not who wrote them:
// every number is. Takes memory in proportion to `bytes` alone. Throws Error{invalid_file}.
Index decode_index(const std::string& path, std::span<const std::byte> bytes, std::uint64_t index_offset);

}  // namespace holdfast::format
