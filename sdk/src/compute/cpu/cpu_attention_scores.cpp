// The scores of a query are scaled and masked in the memory of its shares and become shares there. Keys that causality
// or a window leaves out are neither read nor computed. All loops are those of vector_kernels.h, so that bits depend
// neither on the instruction set nor on how rows are divided.

#include <algorithm>
#include <limits>

#include "compute/cpu/cpu_array_kernels.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {

void CpuArrayKernels::attention_shares(const AttentionScores& scores, const float* from, const float* mask,
                                       float* shares) {
  const VectorKernels& kernels = vector_kernels();
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  for (std::int64_t row = 0; row < scores.rows(); ++row) {
    const std::int64_t first = scores.first(row);
    const std::int64_t count = scores.end(row) - first;
    const float* const given = from + row * scores.keys + first;
    float* const to = shares + row * scores.keys;
    std::fill_n(to, first, 0.0F);
    std::fill_n(to + first + count, scores.keys - first - count, 0.0F);
    // A softmax of nothing has no largest number.
    if (count == 0) continue;
    kernels.scaled(given, count, scores.scale, to + first);
    if (mask != nullptr) {
      const ElementLane operands[] = {
          {.values = mask + scores.mask(row) + first}, {.values = to + first}, {.values = &kMasked, .is_scalar = true}};
      kernels.run_instruction(ElementFunction::select, operands, count, to + first);
    }
    kernels.softmax(to + first, 1, count, to + first);
  }
}

void CpuArrayKernels::attention_shares_backward(const AttentionScores& scores, const float* shares,
                                                const float* shares_gradient, float* scores_gradient) {
  const VectorKernels& kernels = vector_kernels();
  for (std::int64_t row = 0; row < scores.rows(); ++row) {
    const std::int64_t first = scores.first(row);
    const std::int64_t count = scores.end(row) - first;
    const std::int64_t begin = row * scores.keys;
    float* const to = scores_gradient + begin;
    // A masked key has no share, and so the gradient 0 by the formula.
    if (count > 0) {
      kernels.softmax_backward(shares + begin + first, shares_gradient + begin + first, 1, count, to + first);
      kernels.scale(to + first, count, scores.scale);
    }
    // Last, since the array may be that of the gradient.
    std::fill_n(to, first, 0.0F);
    std::fill_n(to + first + count, scores.keys - first - count, 0.0F);
  }
}

}  // namespace holdfast::compute
