#pragma once

// The steps of one replica in one generation: computes this rank's shards, adds all ranks' sums in the shard tree's
// order, applies the update. Between its steps a replica's state is a function of the step number alone, whatever the
// number of replicas.

#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_accumulator.h"
#include "data/batch_loader.h"
#include "holdfast/train/trainable.h"
#include "train/place.h"
#include "train/worker_pool.h"

namespace holdfast {

class StepRunner {
 public:
  // Over the whole global batch.
  struct Outcome {
    std::vector<double> sums;  // one for each of Trainable::sum_names()
    // Some rank was asked before this step to stop, or to regroup; every rank sees the same answer at the same step.
    bool is_stop_requested = false;
    bool is_regroup_requested = false;
    // Rank 0 was asked before this step for a savepoint, likewise.
    bool is_savepoint_requested = false;
    // The ranks are to compare their states behind this step.
    bool is_comparison_requested = false;
    // A sum or a gradient is NaN or infinite, so that nothing was applied; which one.
    std::string not_finite{};
  };

  // How many shards each rank of the generation computes at once, at most. A spare asks before it has a rank.
  static int workers_of(const Replica::Place& place);

  // Connects with the other ranks of the place's generation. The Trainable is prepared for as many workers, and
  // outlives the runner, as the place does.
  StepRunner(Replica::Place& place, Trainable& trainable);

  Communicator& communicator() { return *communicator_; }
  Deadline deadline() const { return Deadline::after(place_.collective_timeout); }
  // This rank's shards.
  ShardRange shards() const { return local_; }

  // Training gets to `point`, where the whole state is at hand, for faults.
  void reach_with_state(FaultPoint point, std::int64_t step);

  struct TrainOptions {
    bool requests_comparison = false;
    bool applies_what_is_not_finite = false;
  };
  // Computes and applies update number step + 1.
  Outcome train(const Batch& batch, std::int64_t step, const TrainOptions& options);
  // Changes nothing.
  Outcome evaluate(const Batch& batch, std::int64_t step);

 private:
  enum class Mode { train, evaluate };

  std::vector<std::span<float>> floats_of(FaultTarget target);
  void compute_at_pace(const Batch& batch, std::int64_t step);

  std::string describe_not_finite(std::span<const float> reduced) const;
  void compute_shards(const Batch& batch, std::int64_t step, Mode mode);
  void compute_shard(const Batch& batch, std::int64_t step, Mode mode, int worker, int index);
  void check_cancelled() const;
  void vote(std::span<float> slot) const;
  Outcome outcome_of(std::span<const float> reduced) const;

  bool requests_comparison_ = false;  // in the step that is being computed

  Replica::Place& place_;
  Trainable& trainable_;
  const ShardRange local_;
  WorkerPool workers_;
  // A block: gradients, padding to a cache line, sums, the votes of ranks.
  std::size_t sum_count_ = 0;
  std::size_t sums_begin_ = 0;
  std::size_t block_floats_ = 0;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<ShardAccumulator> accumulator_;
};

}  // namespace holdfast
