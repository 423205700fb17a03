#pragma once

// How an array is cut into chunks. chunk_codec.h compresses them.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::format {

inline constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 20;

// A chunk is the largest part of at most kMaxChunkBytes that is one range of the row-major bytes: as many
// whole rows as fit, or a part of a row where a row is larger. Chunks at the end of the axis that is cut
// are padded with zeros to full size, as HDF5 requires.
class ChunkGrid {
 public:
  // The position of one chunk in its array.
  struct Piece {
    std::vector<std::uint64_t> offset;  // of the first element, on each axis
    std::size_t first_byte;
    std::size_t bytes;  // without the padding
  };

  // `shape` has at least one axis, and none of them is 0.
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

}  // namespace holdfast::format
