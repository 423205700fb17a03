// The program is compiled on the host for each sum. One bit for an instruction keeps it within a kernel's parameters,
// which need no copy to the device.

#include "collective/nccl/ordered_sum_program.h"

#include <fmt/format.h>
#include <algorithm>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

OrderedSumProgram ordered_sum_program(std::span<const SumInstruction> program, std::span<const float* const> leaves) {
  if (leaves.size() > kMostSumLeaves) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} partial sums are more than the {} that a GPU adds in one pass; use fewer replicas, or assign "
                    "shards evenly",
                    leaves.size(), kMostSumLeaves));
  }
  HOLDFAST_ASSERT(program.size() + 1 == 2 * leaves.size());
  OrderedSumProgram compiled;
  compiled.instructions = static_cast<int>(program.size());
  std::copy(leaves.begin(), leaves.end(), compiled.leaves);
  // The depth decides which kernel is fast enough, so it is found here.
  int depth = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i] == SumInstruction::add) {
      compiled.adds[i / 32] |= std::uint32_t{1} << (i % 32);
      --depth;
    } else {
      compiled.depth = std::max(compiled.depth, ++depth);
    }
  }
  HOLDFAST_ASSERT(depth == 1);
  return compiled;
}

}  // namespace holdfast
