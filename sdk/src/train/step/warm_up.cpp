// A first computation of some size loads kernels, makes plans and finds memory. It happens here, before the process
// joins the others, so no rank waits for it. Nothing of the state changes, and the results are thrown away.
// docs/decisions/recovery.md

#include "train/step/warm_up.h"

#include <vector>

#include "core/worker_pool.h"
#include "data/batches/sample_places.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

void compute_shard(Trainable& trainable, const ShardBatch& shard, WarmUp what) {
  std::vector<float> sums(trainable.sum_names().size() + (shard.has_sample_weights ? 1 : 0));
  if (what == WarmUp::inference) return trainable.compute_sums(shard, sums);
  const std::size_t count = trainable.gradient_count();
  const std::shared_ptr<float[]> gradients = trainable.memory().allocate(count);
  GradientSink sink({gradients.get(), count});
  trainable.compute_gradients(shard, sink, sums);
  // The gradients are freed at the end of this function, which must not be before the device has written them.
  trainable.memory().wait();
}

// The first batch, and the last one if it has fewer samples.
std::vector<std::int64_t> batches_of_other_sizes(const Dataset& data) {
  const std::int64_t last = data.batches() - 1;
  if (last == 0 || data.size() >= (last + 1) * data.batch_size()) return {0};
  return {0, last};
}

// This replica's shard, and one that has a sample more or less: shards of other ranks may become this replica's.
std::vector<int> shards_of_other_sizes(int own, int shards, std::int64_t batch_samples) {
  const auto size = [&](int shard) {
    return begin_of_shard(batch_samples, shard + 1, shards) - begin_of_shard(batch_samples, shard, shards);
  };
  std::vector<int> chosen = {own};
  for (int shard = 0; shard < shards && chosen.size() < 2; ++shard) {
    // Shards differ by one sample at most, so there are two sizes.
    if (size(shard) != size(own)) chosen.push_back(shard);
  }
  return chosen;
}

struct NumberedShard {
  std::int64_t batch = 0;
  int shard = 0;
  int shards = 1;  // of a batch
};

void compute_on_each(const Replica::Context& context, Trainable& trainable, const Dataset& data,
                     const NumberedShard& which, int workers, WarmUp what) {
  const LoadedShards loaded(data, context.seed, which.shards, which.shard, which.shard + 1, 0, which.batch);
  const ShardSlice& slice = loaded.batch().shards.front();
  if (slice.samples == 0) return;
  // Each worker has kernels and memory of its own.
  const auto compute = [&](int, int worker) {
    compute_shard(trainable,
                  {.worker = worker,
                   .seed = context.seed,
                   .first_sample = slice.first_sample,
                   .samples = slice.samples,
                   .batch_samples = loaded.batch().samples,
                   .features = slice.features,
                   .targets = slice.targets,
                   .input_layout = loaded.batch().input_layout(),
                   .target_layout = loaded.batch().target_layout(),
                   .has_sample_weights = loaded.batch().has_weights()},
                  what);
  };
  naming_sample_of(data, context.seed, loaded.batch(), [&] { WorkerPool(workers).run(workers, compute); });
}

}  // namespace

void warm_up(const Replica::Context& context, Trainable& trainable, const Dataset& data, int workers, WarmUp what,
             int shards_together) {
  const int shards = context.shards * shards_together;
  for (const std::int64_t number : batches_of_other_sizes(data)) {
    const std::int64_t samples = samples_of_batch(data, number);
    for (const int shard : shards_of_other_sizes(context.rank % context.shards * shards_together, shards, samples)) {
      compute_on_each(context, trainable, data, {.batch = number, .shard = shard, .shards = shards}, workers, what);
    }
  }
}

}  // namespace holdfast
