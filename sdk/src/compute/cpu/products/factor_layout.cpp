// Widths of models are often powers of two. Where a product reads a column of such a matrix, all its elements fall into
// a few sets of the first cache, and push each other out. On AVX2 oneDNN 2.6 reads factors in place if the result
// is narrow, and was up to 2.2 times as fast with gaps, their copy included: docs/measurements.md. With AVX-512 it has
// other products, which were not measured. docs/decisions/processor-loops.md

#include "compute/cpu/products/factor_layout.h"

#include <algorithm>
#include <utility>

namespace holdfast::compute {
namespace {

// Rows of a multiple of so many floats have their columns in one or two sets, those of half of it in four.
constexpr std::int64_t kAliasedFloats = 512;
// A line of the cache.
constexpr std::int64_t kGapFloats = 16;
// A factor is read once for so many rows or columns of the other one, or its copy costs more than it saves.
constexpr std::int64_t kLeastUses = 32;
constexpr std::int64_t kLeastUsesOfFourSets = 256;
// With fewer elements along the inner axis, they all fit into their sets.
constexpr std::int64_t kLeastInner = 16;

struct Extents {
  std::int64_t rows;
  std::int64_t columns;
};

// Where 1 / rows + 1 / columns is above this, oneDNN does not copy its factors (measured, not documented).
bool is_read_in_place(const Extents& result) {
  return 10'000 * (result.rows + result.columns) >= 38 * result.rows * result.columns;
}

// `inner` is the number of the inner axis; the other one is contiguous.
MemoryDesc with_gaps(const MemoryDesc& matrix, std::size_t inner, std::int64_t uses) {
  const auto& strides = matrix.data.format_desc.blocking.strides;
  const std::int64_t aliased_floats = uses >= kLeastUsesOfFourSets ? kAliasedFloats / 2 : kAliasedFloats;
  const bool is_aliased = strides[1 - inner] == 1 && strides[inner] % aliased_floats == 0;
  if (!is_aliased || uses < kLeastUses || matrix.dims()[inner] < kLeastInner) return matrix;
  Dims spread(2, 1);
  spread[inner] = matrix.dims()[1 - inner] + kGapFloats;
  return MemoryDesc(matrix.dims(), DataType::f32, spread);
}

}  // namespace

ProductFactors spread_in_cache(const ProductFactors& callers) {
  const bool is_measured = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx2;
  const Extents result = {.rows = callers.left.dims()[0], .columns = callers.right.dims()[1]};
  if (!is_measured || !is_read_in_place(result)) return callers;
  return {.left = with_gaps(callers.left, 1, result.columns), .right = with_gaps(callers.right, 0, result.rows)};
}

}  // namespace holdfast::compute
