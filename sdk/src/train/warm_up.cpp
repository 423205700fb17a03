#include "train/warm_up.h"

#include <vector>

#include "data/batch_loader.h"
#include "holdfast/base/error.h"
#include "train/worker_pool.h"

namespace holdfast {
namespace {

void compute_shard(Trainable& trainable, const ShardBatch& shard, WarmUp what) {
  std::vector<float> sums(trainable.sum_names().size());
  if (what == WarmUp::inference) return trainable.compute_sums(shard, sums);
  const std::size_t count = trainable.gradient_count();
  const std::shared_ptr<float[]> gradients = trainable.memory().allocate(count);
  GradientSink sink({gradients.get(), count});
  trainable.compute_gradients(shard, sink, sums);
  trainable.memory().wait();
}

// The first one, and the last where it has fewer samples.
std::vector<std::int64_t> batches_of_other_sizes(const Dataset& data) {
  const std::int64_t last = data.batches() - 1;
  if (last == 0 || data.size() >= (last + 1) * data.batch_size()) return {0};
  return {0, last};
}

}  // namespace

void warm_up(const Replica::Place& place, Trainable& trainable, const Dataset& data, int workers, WarmUp what) {
  const int shard = place.rank % place.shards;
  for (const std::int64_t number : batches_of_other_sizes(data)) {
    BatchLoader loader(data, place.seed, place.shards, shard, shard + 1, 0, number, 1);
    const std::optional<Batch> batch = loader.next();
    HOLDFAST_ASSERT(batch.has_value() && batch->shards.size() == 1);
    const ShardSlice& slice = batch->shards.front();
    if (slice.samples == 0) continue;
    WorkerPool(workers).run(workers, [&](int, int worker) {
      compute_shard(trainable,
                    {.worker = worker,
                     .seed = place.seed,
                     .first_sample = slice.first_sample,
                     .samples = slice.samples,
                     .batch_samples = batch->samples,
                     .features = slice.features,
                     .targets = slice.targets},
                    what);
    });
  }
}

}  // namespace holdfast
