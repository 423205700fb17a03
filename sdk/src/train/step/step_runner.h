#pragma once

// The steps of one replica in one generation: computes this rank's shards, adds all ranks' sums in the shard tree's
// order, applies the update. Between its steps a replica's state is a function of the step number alone, whatever the
// number of replicas.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_accumulator.h"
#include "core/worker_pool.h"
#include "data/batch_loader.h"
#include "holdfast/train/trainable.h"
#include "train/agreement/gradient_check.h"
#include "train/context/place.h"

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
    // Only where the ranks disagreed about gradients, so that the step was computed again; applied where they agree
    // now.
    std::optional<CheckVerdict> check{};
    std::string check_reports{};  // what each rank computed, both times
  };

  // How many shards each rank of the generation computes at once, at most. A spare asks before it has a rank.
  static int workers_of(const Replica::Place& place);

  // Makes place.blocks, and finds the pages that a step will write, which takes as long as a step of many a model. The
  // Trainable is prepared.
  static void prepare_memory(Replica::Place& place, Trainable& trainable);

  // Connects with the other ranks of the place's generation. The Trainable is prepared for as many workers, and
  // outlives the runner, as the place does.
  StepRunner(Replica::Place& place, Trainable& trainable);

  Communicator& communicator() { return *communicator_; }
  Deadline deadline() const { return Deadline::after(place_.collective_timeout); }
  // This rank's shards.
  ShardRange shards() const { return local_; }

  // Those of a rank's shards that are computed twice in a step with a check of so many.
  std::vector<int> drawn_shards_of(int rank, std::int64_t step, int count) const;

  // Training gets to `point`, where the whole state is at hand, for faults.
  void reach_with_state(FaultPoint point, std::int64_t step);

  struct TrainOptions {
    bool requests_comparison = false;
    bool applies_what_is_not_finite = false;
    // Shards of each rank that are computed by another one, too.
    int checked_shards = 0;
    // The samples of this batch's shards [first, end), read anew; asked for in steps with a check.
    std::function<LoadedShards(ShardRange)> load{};
  };
  // Computes and applies update number step + 1. Steps with a check are computed again where ranks disagree.
  Outcome train(const Batch& batch, std::int64_t step, const TrainOptions& options);
  // Changes nothing.
  Outcome evaluate(const Batch& batch, std::int64_t step);

 private:
  enum class Mode { train, evaluate };

  // A shard of a rank before this one.
  struct Recomputation {
    int distance = 1;
    std::optional<LoadedShards> samples{};  // where they are not those of the batch that is computed
    std::size_t index = 0;                  // of the shard, among these
    Digest digest{};
  };
  // The check of the step that is being computed.
  struct Check {
    int recomputations = 1;           // by ranks beside the owner
    std::vector<int> own;             // the drawn ones of this rank's shards
    std::vector<Digest> own_digests;  // of all of this rank's shards; only those of the drawn ones are defined
    std::vector<Recomputation> others;
  };

  static MemoryCommunicatorShape shape_of(const Replica::Place& place, Trainable& trainable);
  MemorySpace& memory() const { return trainable_.memory(); }
  std::vector<std::span<float>> floats_of(FaultTarget target);
  // What a fault may change.
  struct Floats {
    std::vector<std::span<float>> on_host{};
    std::vector<std::span<float>> in_memory{};
  };
  // Whether something was changed.
  bool corrupt(FaultPoint point, std::int64_t step, const std::function<Floats(FaultTarget)>& floats_of);
  bool corrupt_shard(const Slot& slot, std::int64_t step);
  void compute_at_pace(const Batch& batch, std::int64_t step);
  // A sum over all shards, complete on every rank, before anybody has applied it.
  struct Sum {
    Sums block;
    bool is_finite = true;
  };
  Sum sum_over_shards(const Batch& batch, std::int64_t step);
  Sum reduce(std::span<const int> slots);
  bool is_lone_shard() const;
  Outcome apply(const Sum& sum, const Batch& batch, std::int64_t step, const TrainOptions& options);

  Outcome train_checked(const Batch& batch, std::int64_t step, const TrainOptions& options);
  Outcome train_again(const std::vector<CheckReport>& first, std::int64_t step, const TrainOptions& options);
  // Of the batch that is computed; null for one that is read anew, once more.
  Check prepare_check(const Batch* own, std::int64_t step, const TrainOptions& options) const;
  CheckReport report_of(const Check& check) const;
  std::vector<CheckReport> gather_reports();
  std::span<const float> check_floats(std::span<const float> tail) const;

  std::string describe_not_finite(const Sums& reduced) const;
  void compute_shards(const Batch& batch, std::int64_t step, Mode mode);
  void compute_shard(const Batch& batch, std::int64_t step, Mode mode, int worker, int index);
  // Whether ranks may begin to add while this one still computes its shard number `index`.
  bool is_handed_over(int index, std::int64_t step) const;
  GradientSink::Wishes handing_over(int index, std::int64_t step);
  void check_cancelled() const;
  void recompute_shard(const Batch& batch, Recomputation& recomputation, std::int64_t step, int worker);
  // Whether its gradients are finite, where the Trainable has looked.
  std::optional<bool> compute_block(const ShardBatch& shard, const Slot& block, GradientSink::Wishes wishes = {});
  ShardBatch shard_batch(const Batch& batch, std::size_t index, std::int64_t step, int worker) const;
  Digest digest_of(const Slot& block) const;
  void vote(std::span<float> tail) const;
  Outcome outcome_of(const Sums& reduced) const;

  // In the step that is being computed.
  bool requests_comparison_ = false;
  std::optional<Check> check_;
  std::optional<bool> lone_shard_is_finite_;  // of a rank that has no other, where it is known

  Replica::Place& place_;
  Trainable& trainable_;
  const ShardRange local_;
  WorkerPool workers_;
  // A block: gradients, padding to a cache line; and in its tail sums, the votes of ranks, the comparison of a check.
  std::size_t sum_count_ = 0;
  std::size_t gradient_floats_ = 0;
  std::size_t block_floats_ = 0;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<ShardAccumulator> accumulator_;
};

}  // namespace holdfast
