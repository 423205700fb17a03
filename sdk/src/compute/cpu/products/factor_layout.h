#pragma once

// The layout in which a matrix product of oneDNN reads its factors, where the caller's is slow.

#include "compute/cpu/primitive.h"

namespace holdfast::compute {

// Two matrices in f32, [rows, inner] and [inner, columns].
struct ProductFactors {
  MemoryDesc left;
  MemoryDesc right;
};

// A factor whose elements along the inner axis are a multiple of 2 KiB apart, or of 1 KiB where it is read often, gets
// a small gap after each row, so that they no longer share a few lines of the cache: Primitive copies the factor into
// scratch memory then. Others stay as they are, as do those of a product that is too small to pay for the copy, or that
// oneDNN copies itself. The bits of the product are the same either way.
ProductFactors spread_in_cache(const ProductFactors& callers);

}  // namespace holdfast::compute
