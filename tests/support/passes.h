#pragma once

// ArrayPasses in many pieces, the last one first, as threads could take them.

#include <algorithm>

#include "holdfast/core/array_passes.h"

namespace holdfast {

inline void pass_in_pieces(std::size_t items, std::size_t /*floats_each*/, const PassOfRange& pass) {
  constexpr std::size_t kPiece = 16;
  for (std::size_t end = items; end > 0;) {
    const std::size_t begin = (end - 1) / kPiece * kPiece;
    pass(begin, end);
    end = begin;
  }
}

}  // namespace holdfast
