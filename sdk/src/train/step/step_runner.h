#pragma once

// The steps of one replica in one generation: computes this rank's shards, sums all shards in the order of the shard
// tree, and updates the state. Between its steps a replica's state is a function of the step number alone, whatever the
// number of replicas. A step reads as it goes in train/step/step.h. StepArithmetic is the arithmetic of its phases,
// which WatchedStep (phases that the watchdog learns of, injected faults) and CheckedStep (gradients that are computed
// twice) wrap.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "data/batches/batch_loader.h"
#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"
#include "train/context/requests.h"
#include "train/step/block_layout.h"
#include "train/step/shard_computation.h"
#include "train/step/step.h"
#include "train/step/step_faults.h"

namespace holdfast {

// The shards of a step, and what adds them over the ranks.
struct StepShards {
  ShardAssignment assignment;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ShardComputation> computation;
};

class StepRunner {
 public:
  using Outcome = StepOutcome;

  struct TrainOptions {
    bool asks_comparison = false;
    bool asks_end = false;
    bool applies_what_is_not_finite = false;
    std::optional<float> learning_rate{};  // TrainState::learning_rate
    // Shards of each rank that another rank computes, too.
    int checked_shards = 0;
    // How many consecutive shards of the batch there are in place of each shard of the run. They are added as in the
    // tree over all of them (assignment_of_step()).
    int shards_together = 1;
    // Reads the samples of the shards [first, end) of assignment_of_step() anew, for this batch; used in steps with a
    // check.
    std::function<LoadedShards(ShardRange)> load{};
  };

  // Makes the memory for the sums of all generations, and touches its pages, which may take as long as a step. The
  // Trainable is prepared.
  static void prepare_memory(Replica::Context& context, Trainable& trainable);

  // Connects with the other ranks of the context's generation. The Trainable is prepared for shard_workers(). It and
  // the place outlive the runner.
  StepRunner(Replica::Context& context, Trainable& trainable);

  // To be called once the Trainable is laid out as on all other ranks, after a collective call that they share: from
  // then on no more gradients are added than it has.
  void use_layout();

  // Which rank computes which shards of a step with so many in place of each shard of the run. Each of them consists of
  // ShardTree::parts_of_a_node() shards of the batch, which are computed one after another.
  static ShardAssignment assignment_of_step(const Replica::Context& context, int shards_together);
  // These shards. With numbers that no power of two and no single shard of the run makes one node of the tree, a
  // generation's first step connects the ranks a second time: each has several sums to add then. All ranks make the
  // same calls.
  StepShards& shards_of_step(int shards_together, std::int64_t step);

  Communicator& communicator() { return *shards_.communicator; }
  Deadline deadline() const { return Deadline::after(context_.collective_timeout); }
  // This rank's shards.
  ShardRange shards() const { return shards_.computation->shards(); }

  // The text of rank `root`, on every rank. All ranks make the same call.
  std::string share_text(std::string text, int root);
  // The text of the lowest rank that has one; empty if none has. All ranks make the same call.
  std::string share_first_text(std::string own);

  // Training reaches `point` with the whole state at hand, for injected faults.
  void reach(FaultPoint point, std::int64_t step) { shards_.computation->faulty().reach(point, step); }

  // Changes nothing.
  Outcome evaluate(const Batch& batch, std::int64_t step);
  // Fills `outputs` with those of the whole batch, the same on every rank: shard after shard, and of each shard one
  // output after another. Changes nothing.
  void predict(const Batch& batch, std::int64_t step, std::span<float> outputs);

  // The sums of the whole batch, before their penalty.
  Outcome outcome_of(const StepSum& sum) const;
  const BlockLayout& layout() const { return layout_; }
  const Replica::Context& context() const { return context_; }
  Trainable& trainable() { return trainable_; }

 private:
  friend class StepArithmetic;

  StepShards connect(const ShardAssignment& assignment);
  void compute_with(StepShards& shards);
  void add_penalty(const Batch& batch, Outcome& outcome) const;
  std::string describe_not_finite(const Sums& reduced) const;

  Replica::Context& context_;
  Trainable& trainable_;
  BlockLayout layout_;
  StepShards shards_;                 // of the run
  std::optional<StepShards> second_;  // of steps with other shards
  std::vector<float> divisors_;       // of the batch that is being computed
};

// The arithmetic of a step, phase by phase, and nothing else. carry_out() on its watched() computes and applies the
// update; a step with a check of gradients is a CheckedStep.
class StepArithmetic final : public Step {
 public:
  // Computes update number step + 1. All outlive it. One at a time for each runner.
  StepArithmetic(StepRunner& runner, const Batch& batch, std::int64_t step, const StepRunner::TrainOptions& options);

  // Computes the shards of `check` too, and tells the other ranks what came out. The check outlives the step.
  void compute_also(StepCheck& check) { check_ = &check; }
  // The step as the watchdog sees it, with injected faults. It must not outlive this one.
  WatchedStep watched();

  bool has_divisors() const override { return divisor_count_ > 0; }
  void sum_divisors() override;
  void share_divisors() override;
  void forward_and_backward() override;
  StepSum sum_over_ranks() override;
  StepOutcome agree(StepSum& sum) override;
  void update(const StepSum& sum) override;

 private:
  StepRunner& runner_;
  const Batch& batch_;
  const std::int64_t step_;
  const StepRunner::TrainOptions& options_;
  const int shards_together_;  // in each shard of `shards_`
  StepShards& shards_;
  const std::size_t divisor_count_;
  StepCheck* check_ = nullptr;
};

}  // namespace holdfast
