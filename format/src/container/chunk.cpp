// Chunks follow from the shape alone, so a reader computes them and the file need not list them. A chunk is one range
// of the array's bytes: it is cut along one axis, which is the first axis that is not split into single rows.
//
#include "container/chunk.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast::format {
ChunkGrid::ChunkGrid(std::vector<std::uint64_t> shape, std::size_t element_bytes)
    : shape_(std::move(shape)), chunk_shape_(shape_.size()), inner_bytes_(element_bytes) {
  HOLDFAST_ASSERT(!shape_.empty() && std::find(shape_.begin(), shape_.end(), 0U) == shape_.end());
  // From the last axis on, each axis takes as much of the budget as it has elements.
  std::uint64_t budget = kMaxChunkBytes / element_bytes;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    chunk_shape_[axis] = std::min(shape_[axis], budget);
    budget /= chunk_shape_[axis];
  }
  // The axes before it have an extent of 1 in each chunk, and the axes after it are whole.
  while (cut_axis_ + 1 < shape_.size() && chunk_shape_[cut_axis_] == 1) outer_ *= shape_[cut_axis_++];
  for (std::size_t axis = cut_axis_ + 1; axis < shape_.size(); ++axis) inner_bytes_ *= shape_[axis];
  pieces_per_outer_ = (shape_[cut_axis_] + chunk_shape_[cut_axis_] - 1) / chunk_shape_[cut_axis_];
  chunk_bytes_ = chunk_shape_[cut_axis_] * inner_bytes_;
}

ChunkGrid::Piece ChunkGrid::piece(std::uint64_t index) const {
  HOLDFAST_ASSERT(index < count());
  Piece piece{.offset = std::vector<std::uint64_t>(shape_.size()), .first_byte = 0, .bytes = 0};
  std::uint64_t outer = index / pieces_per_outer_;
  const std::uint64_t begin = index % pieces_per_outer_ * chunk_shape_[cut_axis_];
  piece.first_byte = (outer * shape_[cut_axis_] + begin) * inner_bytes_;
  piece.bytes = std::min(chunk_shape_[cut_axis_], shape_[cut_axis_] - begin) * inner_bytes_;
  piece.offset[cut_axis_] = begin;
  // The number of the piece counts the outer axes like digits, the last of them the fastest.
  for (std::size_t axis = cut_axis_; axis-- > 0;) {
    piece.offset[axis] = outer % shape_[axis];
    outer /= shape_[axis];
  }
  return piece;
}

}  // namespace holdfast::format
