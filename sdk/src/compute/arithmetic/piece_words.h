#pragma once

// The words of several arrays as one sequence, for xxh3.h.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

// An array, which is not empty, and its bytes within the whole sequence.
struct Piece {
  const std::uint32_t* words;
  std::uint64_t begin;  // in bytes, multiples of 4
  std::uint64_t end;    // where the next piece begins
};

// The piece with byte `at` of the sequence, which must exist. Pieces are in order and have no gaps.
HOLDFAST_HOST_DEVICE inline std::uint32_t piece_of(const Piece* pieces, std::uint32_t count, std::uint64_t at) {
  std::uint32_t first = 0;
  while (count > 1) {
    const std::uint32_t half = count / 2;
    if (pieces[first + half].begin <= at) {
      first += half;
      count -= half;
    } else {
      count = half;
    }
  }
  return first;
}

// The words from byte `base` of the sequence on. The next word is nearly always in the same piece as the last one, or
// in the next piece.
class PieceWords {
 public:
  HOLDFAST_HOST_DEVICE PieceWords(const Piece* pieces, std::uint32_t piece, std::uint64_t base)
      : pieces_(pieces), base_(base), index_(piece), piece_(pieces[piece]) {}

  HOLDFAST_HOST_DEVICE std::uint32_t read32(std::uint32_t offset) const {
    const std::uint64_t at = base_ + offset;
    while (at >= piece_.end) piece_ = pieces_[++index_];
    while (at < piece_.begin) piece_ = pieces_[--index_];
    return piece_.words[(at - piece_.begin) / sizeof(std::uint32_t)];
  }

  HOLDFAST_HOST_DEVICE std::uint64_t read64(std::uint32_t offset) const {
    const std::uint64_t low = read32(offset);
    return low | static_cast<std::uint64_t>(read32(offset + 4)) << 32;
  }

 private:
  const Piece* const pieces_;
  const std::uint64_t base_;
  mutable std::uint32_t index_;
  mutable Piece piece_;  // pieces_[index_]
};

}  // namespace holdfast::compute
