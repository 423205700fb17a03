#pragma once

// How many samples a step of fit() has when the number of replicas changes. By default always as many, so that no bit
// depends on the replicas. BatchPolicy::per_replica lets the batch grow and shrink with them, as elastic training with
// DistributedDataParallel does:
//
//   trainer.fit(train.shuffle().batch(64), {.epochs = 90, .global_batch = {.policy = BatchPolicy::per_replica}});
//
// Each change is recorded with its step. A run that is given the record makes the same changes at the same steps, and
// ends with the same bits on any number of replicas:
//
//   .global_batch = {.policy = BatchPolicy::per_replica, .replay = recorded_batches(path_of_a_savepoint)}

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

// What `batch(n)` of the data counts.
enum class BatchPolicy {
  fixed,        // the samples of a step, whatever the number of replicas
  per_replica,  // the samples of each replica; a step has n times the number of replicas
};

// From the step after `step` updates on, the batch is that of so many replicas.
struct BatchChange {
  std::int64_t step = 0;  // updates of the Trainer before it, as Trainer::step() counts them
  int replicas = 1;       // whose samples a step has from then on

  bool operator==(const BatchChange&) const = default;
};

// How many samples a step has. With BatchPolicy::per_replica, TrainingContext::batches_per_epoch() is a forecast that
// holds while the number of replicas stays; before the first step, in on_fit_begin(), it counts those of one replica.
struct GlobalBatch {
  BatchPolicy policy = BatchPolicy::fixed;  // what the batch of the data counts
  // The number of replicas that the optimizer's learning rate is meant for. With R replicas, each update uses the rate
  // times R / rate_for_replicas (the linear scaling rule of Goyal et al., arXiv:1706.02677). It applies to a schedule
  // and to a rate that a callback sets, too; callbacks see and set the rate before this factor. 0: no factor.
  int rate_for_replicas = 0;
  // Takes the numbers of replicas from this list instead of from the run: the last entry whose step has come. The run
  // needs the seed and the shards of the one that is replayed, and may have any number of replicas. Empty: no replay.
  std::vector<BatchChange> replay{};
};

// The changes that a savepoint has in its calls of fit() with BatchPolicy::per_replica, in the order of their steps.
// Empty without such a call. Throws Error{invalid_file} for a damaged file, and what the file system throws.
std::vector<BatchChange> recorded_batches(const std::string& path);

}  // namespace holdfast
