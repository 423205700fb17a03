#pragma once

// The shards of one rank in one generation: computes them on worker threads into the slots of the communicator, and
// adds them there as far as the shard tree allows. docs/decisions/sums.md

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collective/communicator.h"
#include "collective/shard_accumulator.h"
#include "core/worker_pool.h"
#include "data/batches/batch_loader.h"
#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"
#include "train/step/block_layout.h"
#include "train/step/deferred_sums.h"
#include "train/step/gradient_check.h"
#include "train/step/step_faults.h"

namespace holdfast {

// How many shards each rank of the generation computes at once, at most. A spare asks before it has a rank.
int shard_workers(const Replica::Context& context);
// The floats of all outputs of one sample.
std::size_t floats_of_outputs(const Trainable& trainable);

class ShardComputation {
 public:
  struct Options {
    bool asks_comparison = false;  // which joins the requests of the watchdog
    bool asks_end = false;         // likewise
    int shards_together = 1;       // see compute()
    StepCheck* check = nullptr;    // shards of other ranks to compute, too, and where their digests go
  };

  // All outlive it. The Trainable is prepared for shard_workers(). The communicator adds with the threads of this
  // object from now on, and is used only as long as it exists.
  // `assignment` is that of the context, or has several shards in place of each of it.
  ShardComputation(Replica::Context& context, Trainable& trainable, Communicator& communicator,
                   const BlockLayout& layout, const ShardAssignment& assignment);

  // The forward and backward pass of each shard of `batch`, which has shards_together shards for each one of the
  // assignment, a node of the shard tree over all of them. The sum of these is that of one shard. A device's
  // gradients go to the other ranks in buckets while its last shard is still being computed.
  void compute(const Batch& batch, std::int64_t step, const Options& options);
  // Adds up the divisors of this rank's shards. They are the first numbers of the tail.
  void sum_divisors(const Batch& batch, std::int64_t step, int shards_together, std::size_t count);
  // What compute() and compute_sums() give to the Trainable: the sums of all ranks. Empty without divisors of its own.
  void set_divisors(std::span<const float> divisors) { divisors_.assign(divisors.begin(), divisors.end()); }
  // Computes loss and metrics alone, in inference mode.
  void compute_sums(const Batch& batch, std::int64_t step);
  // Computes the outputs of this rank's samples, shard after shard: of each shard, one output after another.
  void predict(const Batch& batch, std::int64_t step, std::span<float> outputs);

  // After compute(): the slots that hold the sums of this rank's shards, from left to right in the shard tree.
  std::vector<int> covering_slots() const { return accumulator_.covering_slots(); }
  // After compute(), if this rank is the only one: whether the sum of its shards is finite. Empty if nobody has looked.
  std::optional<bool> lone_sum_is_finite() const { return lone_sum_is_finite_; }

  ShardRange shards() const { return local_; }
  // The threads of all shards. Not while shards are being computed.
  const ArrayPasses& passes() const { return passes_; }
  FaultyTrainable& faulty() { return faulty_; }

 private:
  // Memory of a worker for the sum of some shards that are computed together.
  struct Scratch {
    std::shared_ptr<float[]> gradients;
    std::vector<float> tail;
  };
  // Computes shards of a batch for the thread of a worker, with or without injected faults.
  struct Work {
    const Batch& batch;
    std::int64_t step = 0;
    int worker = 0;
    bool has_faults = true;
  };

  // After its gradients were computed.
  void end_shard(const Work& work, GradientSink& sink, std::span<float> sums);
  void compute_together(const Work& work, ShardRange shards, const Slot& into, std::size_t depth);
  Slot scratch(int worker, std::size_t depth);
  void sum_divisors_of(const Batch& batch, std::int64_t step, ShardRange shards, std::span<float> divisors);
  void compute_sums_of_shard(const Batch& batch, std::int64_t step, int worker, int index);
  Slot acquire(int index);
  void complete(int index, const Slot& slot, bool with_gradients);
  void begin_deferred(const Batch& batch, std::int64_t step);
  bool add_deferred();
  void recompute_shard(const Batch& batch, StepCheck::Recomputation& recomputation, std::int64_t step, int worker);
  std::span<float> sums_of(const Batch& batch, const Slot& slot) const;
  ShardBatch shard_batch(const Batch& batch, std::size_t index, std::int64_t step, int worker) const;
  std::function<void(std::string_view)> parts_of(int worker) const;
  GradientSink open_sink(const Slot& slot, GradientSink::Options options);
  void require_all_ready(const GradientSink& sink) const;
  bool is_lone_shard() const;
  bool can_overlap(int index, std::int64_t step) const;
  GradientSink::Options send_when_ready(int index, std::int64_t step);
  void write_requests(std::span<float> tail) const;
  Digest digest_of(const Slot& slot) const;
  void check_cancelled() const;
  MemorySpace& memory() const { return trainable_.memory(); }

  Replica::Context& context_;
  Trainable& trainable_;
  Communicator& communicator_;
  const BlockLayout layout_;
  const ShardRange local_;
  FaultyTrainable faulty_;
  WorkerPool workers_;
  const ArrayPasses passes_;
  ShardAccumulator accumulator_;
  DeferredSums deferred_;
  std::vector<std::vector<Scratch>> scratch_;  // by worker, then by depth in the tree; made when it is needed

  // For the step that is being computed.
  Options options_{};
  bool defers_ = false;  // whether shards may leave gradients to deferred_
  std::optional<bool> lone_sum_is_finite_;
  std::vector<float> divisors_;
};

}  // namespace holdfast
