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

}  // namespace

void warm_up(const Replica::Place& place, Trainable& trainable, const Dataset& data, int workers, WarmUp what) {
  const int shard = place.rank % place.shards;
  BatchLoader loader(data, place.seed, place.shards, shard, shard + 1, 0, 0, 1);
  const std::optional<Batch> batch = loader.next();
  HOLDFAST_ASSERT(batch.has_value() && batch->shards.size() == 1);
  const ShardSlice& slice = batch->shards.front();
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

}  // namespace holdfast
