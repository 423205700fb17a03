#pragma once

// How an array is cut into chunks, and how a chunk becomes a zstd frame. Knows nothing of HDF5, and chunks know nothing
// of each other, so that they can be made and read by several threads.

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace holdfast::format {

inline constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 20;
// A chunk is the largest part of at most kMaxChunkBytes that is one range of the row-major bytes: as many whole rows
// (or, where a row is larger, parts of one) as fit. Chunks at the end of the axis that is cut are padded with zeros to
// full size.
class ChunkGrid {
 public:
  // One chunk's place in its array.
  struct Piece {
    std::vector<std::uint64_t> offset;  // of the first element, on each axis
    std::size_t first_byte;
    std::size_t bytes;  // without the padding
  };

  // At least one axis, none of them 0, and bytes that memory can hold.
  ChunkGrid(std::vector<std::uint64_t> shape, std::size_t element_bytes);

  const std::vector<std::uint64_t>& chunk_shape() const { return chunk_shape_; }
  std::size_t chunk_bytes() const { return chunk_bytes_; }
  std::uint64_t count() const { return outer_ * pieces_per_outer_; }
  Piece piece(std::uint64_t index) const;

 private:
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> chunk_shape_;
  std::size_t chunk_bytes_;
  std::size_t cut_axis_ = 0;            // the axes before it have chunks of 1, those after it are whole
  std::uint64_t outer_ = 1;             // elements of the axes before cut_axis_
  std::uint64_t pieces_per_outer_ = 1;  //
  std::size_t inner_bytes_;             // of one element of cut_axis_
};

// The fewest bytes in which zstd can hold a chunk: 13 bytes of frame and 4 a block of 128 KiB. A file that claims more
// chunks than it could hold is refused before memory is taken for them.
std::uint64_t min_frame_bytes(std::size_t chunk_bytes);

// Makes frames of chunks: HDF5's shuffle (byte b of all elements, then byte b + 1), then one zstd frame with content
// size and checksum. Not for several threads at once.
class ChunkEncoder {
 public:
  // `level` must lie within zstd's bounds.
  explicit ChunkEncoder(std::optional<int> level);

  // `bytes` padded with zeros to `chunk_bytes`, encoded. The result is valid until the next call.
  std::span<const std::byte> encode(std::span<const std::byte> bytes, std::size_t chunk_bytes,
                                    std::size_t element_bytes);

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
  std::vector<std::byte> padded_;
  std::vector<std::byte> shuffled_;
  std::vector<std::byte> frame_;
};

struct DecodeOptions {
  bool skip_checksum = false;
};

// The way back. Not for several threads at once.
class ChunkDecoder {
 public:
  explicit ChunkDecoder(const DecodeOptions& = {});

  // Fills `out` from the beginning of the chunk. False, with `out` undefined, unless `frame` is exactly one undamaged
  // zstd frame of `chunk_bytes`.
  [[nodiscard]] bool decode(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                            std::span<std::byte> out);

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::vector<std::byte> shuffled_;
};

}  // namespace holdfast::format
