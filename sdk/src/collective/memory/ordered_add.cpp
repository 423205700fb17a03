#include "collective/memory/ordered_add.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/core/memory_space.h"

namespace holdfast {
namespace {

// A temporary has 4 KiB. A tree over 2^20 shards needs 20 of them, which fit into the caches of a core.
constexpr std::size_t kBlockFloats = 1024;

// A loop that the compiler vectorises; the order within a pair is all that matters for bits.
void add(const float* left, const float* right, float* sum, std::size_t floats) {
  for (std::size_t i = 0; i < floats; ++i) sum[i] = left[i] + right[i];
}

}  // namespace

bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum) {
  HOLDFAST_ASSERT(!program.empty() && program.size() + 1 == 2 * leaves.size());
  std::vector<float> temporaries(leaves.size() * kBlockFloats);
  // Pointers, so that a leaf is read where it lies.
  std::vector<const float*> stack(leaves.size());
  bool all_finite = true;
  for (std::size_t begin = range.begin; begin < range.end; begin += kBlockFloats) {
    const std::size_t floats = std::min(kBlockFloats, range.end - begin);
    float* const result = sum + (begin - range.begin);
    std::size_t depth = 0;
    std::size_t next_leaf = 0;
    for (std::size_t at = 0; at < program.size(); ++at) {
      if (program[at] == SumInstruction::push) {
        stack[depth++] = leaves[next_leaf++] + begin;
        continue;
      }
      // The sum replaces its left operand on the stack, so one temporary for each depth is enough. The last sum is
      // written where it belongs.
      float* const place = at + 1 == program.size() ? result : temporaries.data() + (depth - 2) * kBlockFloats;
      add(stack[depth - 2], stack[depth - 1], place, floats);
      stack[depth - 2] = place;
      --depth;
    }
    HOLDFAST_ASSERT(depth == 1);
    if (leaves.size() == 1) std::memcpy(result, stack[0], floats * sizeof(float));
    all_finite = host_memory().is_finite({result, floats}) && all_finite;
  }
  return all_finite;
}

}  // namespace holdfast
