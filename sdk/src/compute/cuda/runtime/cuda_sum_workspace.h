#pragma once

// What kernels that add over samples leave behind for one another. In device memory, for one kernel at a time.

namespace holdfast::compute {

inline constexpr int kMostSumBlocks = 1024;

// Zeros at first.
struct SumWorkspace {
  double block_sums[kMostSumBlocks];
  unsigned finished_blocks;  // of the running kernel
};

}  // namespace holdfast::compute
