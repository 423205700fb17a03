#pragma once

// The steps of one replica in one generation: computes this rank's shards, sums all shards in the order of the shard
// tree, and updates the state. Between its steps a replica's state is a function of the step number alone, whatever the
// number of replicas. StepRunner::train() reads as a step goes; what surrounds it is in ShardComputation (workers,
// injected slowness), FaultyTrainable (injected faults) and CheckedStep (gradients that are computed twice).

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
#include "train/step/gradient_check.h"
#include "train/step/shard_computation.h"

namespace holdfast {

class StepRunner {
 public:
  // Over the whole global batch; the same on every rank.
  struct Outcome {
    std::vector<double> sums;        // one for each of Trainable::sum_names()
    double weight = 0;               // of the samples, if they have weights
    std::vector<double> divisors{};  // of the batch, if the Trainable has divisors of its own
    Requests requests{};             // that some rank made with this step
    // Which sum or gradient is NaN or infinite, so that nothing was applied; empty if all are finite.
    std::string not_finite{};
    // Set only if the ranks disagreed about gradients, so that the step was computed again. The update was applied if
    // they agree now.
    std::optional<CheckVerdict> check{};
    std::string check_reports{};  // what each rank computed, both times
  };

  struct TrainOptions {
    bool asks_comparison = false;
    bool asks_end = false;
    bool applies_what_is_not_finite = false;
    std::optional<float> learning_rate{};  // TrainState::learning_rate
    // Shards of each rank that another rank computes, too.
    int checked_shards = 0;
    // How many consecutive shards of the batch are computed in place of each shard of the run, one after another. The
    // batch then has that many times the shards of the run.
    int shards_together = 1;
    // Reads the samples of the shards [first, end) of the run anew, for this batch; used in steps with a check.
    std::function<LoadedShards(ShardRange)> load{};
  };

  // A sum over all shards, complete on every rank, before any rank has applied it.
  struct Sum {
    Sums block;
    bool is_finite = true;
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

  Communicator& communicator() { return *communicator_; }
  Deadline deadline() const { return Deadline::after(context_.collective_timeout); }
  // This rank's shards.
  ShardRange shards() const { return shards_->shards(); }

  // Training reaches `point` with the whole state at hand, for injected faults.
  void reach(FaultPoint point, std::int64_t step) { shards_->faulty().reach(point, step); }

  // Computes and applies update number step + 1. Steps with a check of gradients: CheckedStep.
  Outcome train(const Batch& batch, std::int64_t step, const TrainOptions& options);
  // Changes nothing.
  Outcome evaluate(const Batch& batch, std::int64_t step);
  // Fills `outputs` with those of the whole batch, the same on every rank: shard after shard, and of each shard one
  // output after another. Changes nothing.
  void predict(const Batch& batch, std::int64_t step, std::span<float> outputs);

  // The parts of a step, for CheckedStep. The first, before the pass, reduces what a Trainable with divisors of its own
  // divides by over all ranks: no shard knows it alone.
  void find_divisors(const Batch& batch, std::int64_t step, int shards_together);
  ShardComputation& computation() { return *shards_; }
  Sum reduce(std::int64_t step);
  Outcome agree_and_update(const Sum& sum, const Batch& batch, std::int64_t step, const TrainOptions& options);
  Outcome outcome_of(const Sum& sum) const;
  const BlockLayout& layout() const { return layout_; }
  const Replica::Context& context() const { return context_; }
  Trainable& trainable() { return trainable_; }

 private:
  void add_penalty(const Batch& batch, Outcome& outcome) const;
  void update(const Sum& sum, const Batch& batch, std::int64_t step, std::optional<float> learning_rate);
  std::string describe_not_finite(const Sums& reduced) const;

  Replica::Context& context_;
  Trainable& trainable_;
  BlockLayout layout_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<ShardComputation> shards_;
  std::vector<float> divisors_;  // of the batch that is being computed
};

}  // namespace holdfast
