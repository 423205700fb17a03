#pragma once

// A step in which some shards are computed by two ranks: nothing is applied before the ranks agree about gradients.
// If they disagree, all compute the step again. docs/decisions/wrong-numbers.md

#include <cstdint>
#include <vector>

#include "train/step/gradient_check.h"
#include "train/step/step_runner.h"

namespace holdfast {

// The drawn shards of `rank` in a step with this assignment that checks `count` shards of each rank.
std::vector<int> drawn_shards_of(const Replica::Context& context, const ShardAssignment& assignment, int rank,
                                 std::int64_t step, int count);

class CheckedStep {
 public:
  // Computes update number step + 1. Both outlive it.
  CheckedStep(StepRunner& runner, const StepRunner::TrainOptions& options, std::int64_t step)
      : runner_(runner),
        options_(options),
        step_(step),
        shards_(runner.shards_of_step(options.shards_together, step)) {}

  StepRunner::Outcome train(const Batch& batch);

 private:
  // As carry_out() does, with shards of other ranks too.
  StepRunner::Outcome train_again(const std::vector<CheckReport>& first);
  // `own` is the batch that is being computed; null: one that is read anew.
  StepCheck prepare(const Batch* own) const;
  std::vector<CheckReport> gather_reports(const StepCheck& check);

  StepRunner& runner_;
  const StepRunner::TrainOptions& options_;
  const std::int64_t step_;
  StepShards& shards_;
};

}  // namespace holdfast
