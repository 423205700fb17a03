#pragma once

// 50 steps of the residual network of the examples, as scripts/tests/residual_losses.py repeats them in PyTorch.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace holdfast {

constexpr std::int64_t kResidualSteps = 50;
constexpr std::int64_t kResidualBatch = 32;
constexpr std::uint64_t kResidualSeed = 0;

struct ResidualOptions {
  float learning_rate;
  float momentum;
};
inline constexpr std::array kResidualRuns = {ResidualOptions{.learning_rate = 0.05F, .momentum = 0},
                                             ResidualOptions{.learning_rate = 0.02F, .momentum = 0.9F}};

// Drawn digits, in the order in which a run of one epoch takes them.
Dataset residual_data();
// The loss of each step, with SGD. A batch is one shard, so that its statistics are those of the whole batch.
std::vector<double> residual_losses(const ResidualOptions& options);
// A savepoint of the weights that residual_losses() begins with.
void save_initial_residual(const std::string& path);

}  // namespace holdfast
