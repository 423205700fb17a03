#include "holdfast/train/replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "holdfast/holdfast.h"
#include "train/step/model_trainable.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

// A model that remembers how many shards were to be computed at once.
class RemembersWorkers final : public Trainable {
 public:
  std::string graph() const override { return model_.graph(); }
  std::string configuration() const override { return model_.configuration(); }
  std::string arithmetic() const override { return model_.arithmetic(); }
  Shape feature_shape() const override { return model_.feature_shape(); }
  Shape target_shape() const override { return model_.target_shape(); }
  Shape output_shape() const override { return model_.output_shape(); }
  void prepare(const Workers& workers) override {
    count = workers.count;
    model_.prepare(workers);
  }
  void initialize(std::uint64_t seed) override { model_.initialize(seed); }
  std::vector<StateSpan> state() override { return model_.state(); }
  std::vector<std::string> sum_names() const override { return model_.sum_names(); }
  std::size_t gradient_count() const override { return model_.gradient_count(); }
  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
    model_.compute_gradients(batch, sink, sums);
  }
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override { model_.compute_sums(batch, sums); }
  void predict(const ShardBatch& batch, std::span<float> outputs) override { model_.predict(batch, outputs); }
  void apply_update(const Update& update) override { model_.apply_update(update); }

  int count = 0;

 private:
  ModelTrainable model_{small_model(), SGD(0.01F), {SparseCategoricalCrossentropy{{.from_logits = true}}}, {}};
};

struct Alone {
  int workers;
  std::string digest;
};

Alone train_alone_with(const AloneOptions& options) {
  Replica replica = Replica::alone(options);
  RemembersWorkers model;
  Trainer trainer(replica, model);
  trainer.fit(small_data().batch(8));
  return {model.count, trainer.weights_digest().hex()};
}

TEST(Replica, AloneComputesAsManyShardsAtOnceAsThereAreCores) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());

  const Alone side_by_side = train_alone_with({.shards = 4});
  // As many threads as there are cores leave room for one shard.
  const Alone one_by_one = train_alone_with({.shards = 4, .threads_per_shard = cores});

  EXPECT_EQ(side_by_side.workers, std::min(cores, 4));
  EXPECT_EQ(one_by_one.workers, 1);
}

TEST(Replica, AloneHasTheBitsOfARunThatComputesOneShardAfterTheOther) {
  const Alone side_by_side = train_alone_with({.seed = 3, .shards = 4});
  std::string digest;
  train_on_threads({.shards = 4, .seed = 3, .workers = 1}, [&](Replica& replica) {
    RemembersWorkers model;
    Trainer trainer(replica, model);
    trainer.fit(small_data().batch(8));
    EXPECT_EQ(model.count, 1);
    digest = trainer.weights_digest().hex();
  });

  EXPECT_EQ(side_by_side.digest, digest);
}

}  // namespace
}  // namespace holdfast
