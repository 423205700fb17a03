#pragma once

// The workspace of kernels that add over samples: the partial sums of their blocks. It is in device memory, and for one
// kernel at a time.

namespace holdfast::compute {

inline constexpr int kMostSumBlocks = 1024;

// Must be zeros before the first kernel. Each kernel leaves finished_blocks at 0.
struct SumWorkspace {
  double block_sums[kMostSumBlocks];
  unsigned finished_blocks;  // how many blocks of the running kernel have finished
};

}  // namespace holdfast::compute
