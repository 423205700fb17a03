// Which shards a process computes before it reports that it is ready. The model only records the shapes that it meets.

#include "train/step/warm_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "holdfast/data/dataset.h"

namespace holdfast {
namespace {

struct Computed {
  int worker = 0;
  std::int64_t batch_samples = 0;
  std::int64_t samples = 0;
  bool is_training = false;

  auto operator<=>(const Computed&) const = default;
};

// Records what it is asked to compute, and fails if any other function is called.
class Notes final : public Trainable {
 public:
  std::vector<Computed> computed() {
    std::sort(computed_.begin(), computed_.end());
    return computed_;
  }

  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override {
    EXPECT_EQ(sink.gradients().size(), 5U);
    EXPECT_EQ(sums.size(), 1U);
    note(batch, true);
  }
  void compute_sums(const ShardBatch& batch, std::span<float>) override { note(batch, false); }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return 5; }

  std::string graph() const override { return refused<std::string>(); }
  std::string configuration() const override { return refused<std::string>(); }
  std::string arithmetic() const override { return refused<std::string>(); }
  Shape feature_shape() const override { return refused<Shape>(); }
  Shape target_shape() const override { return refused<Shape>(); }
  Shape output_shape() const override { return refused<Shape>(); }
  void prepare(const Workers&) override { refused<int>(); }
  void initialize(std::uint64_t) override { refused<int>(); }
  std::vector<StateSpan> state() override { return refused<std::vector<StateSpan>>(); }
  void predict(const ShardBatch&, std::span<float>) override { refused<int>(); }
  void apply_update(const Update&) override { refused<int>(); }

 private:
  template <class T>
  static T refused() {
    ADD_FAILURE() << "warming up may only compute";
    return T();
  }

  void note(const ShardBatch& batch, bool is_training) {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(batch.features.size(), static_cast<std::size_t>(batch.samples * 2));
    computed_.push_back({batch.worker, batch.batch_samples, batch.samples, is_training});
  }

  std::mutex mutex_;
  std::vector<Computed> computed_;
};

Dataset data(std::int64_t samples = 24) {
  return from_tensors(Tensor(Shape{samples, 2}), Tensor(Shape{samples})).batch(8).prefetch(1);
}

Replica::Context context_of(int rank) {
  Replica::Context context;
  context.rank = rank;
  context.shards = 3;
  return context;
}

TEST(WarmUp, ComputesAShardOfTheFirstBatchOnEachWorker) {
  Notes trainable;
  Replica::Context context = context_of(0);
  context.shards = 2;

  warm_up(context, trainable, data(), 2, WarmUp::training);

  EXPECT_EQ(trainable.computed(), (std::vector<Computed>{{0, 8, 4, true}, {1, 8, 4, true}}));
}

// When a replica is lost, other replicas get its shards.
TEST(WarmUp, ComputesShardsOfBothSizes) {
  for (const int rank : {0, 1, 2}) {
    Notes trainable;

    warm_up(context_of(rank), trainable, data(), 1, WarmUp::training);

    EXPECT_EQ(trainable.computed(), (std::vector<Computed>{{0, 8, 2, true}, {0, 8, 3, true}})) << rank;
  }
}

// A device may take longer to prepare for a new size than a step may take.
TEST(WarmUp, ComputesAShardOfALastBatchThatIsSmaller) {
  Notes trainable;

  warm_up(context_of(2), trainable, data(20), 1, WarmUp::training);

  EXPECT_EQ(trainable.computed(),
            (std::vector<Computed>{{0, 4, 1, true}, {0, 4, 2, true}, {0, 8, 2, true}, {0, 8, 3, true}}));
}

TEST(WarmUp, ComputesNothingOfAShardWithoutSamples) {
  Notes trainable;

  warm_up(context_of(0), trainable, data(17), 1, WarmUp::training);

  EXPECT_EQ(trainable.computed(), (std::vector<Computed>{{0, 1, 1, true}, {0, 8, 2, true}, {0, 8, 3, true}}));
}

TEST(WarmUp, OnlyInfersForAnEvaluation) {
  Notes trainable;

  warm_up(context_of(2), trainable, data(), 1, WarmUp::inference);

  EXPECT_EQ(trainable.computed(), (std::vector<Computed>{{0, 8, 2, false}, {0, 8, 3, false}}));
}

// A spare's rank lies beyond those of the run.
TEST(WarmUp, KnowsAShardForAnyRank) {
  Notes trainable;

  warm_up(context_of(7), trainable, data(), 1, WarmUp::training);

  EXPECT_EQ(trainable.computed().size(), 2U);
}

}  // namespace
}  // namespace holdfast
