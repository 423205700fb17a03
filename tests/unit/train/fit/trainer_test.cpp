// Whole trainings on ranks that are threads. Their bits must not depend on replicas, workers or the assignment of
// shards, so outcomes are compared exactly.

#include "holdfast/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "holdfast/base/error.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/played_supervision.h"
#include "unit/train/support/small_training.h"

namespace holdfast {

TEST(Trainer, GivesTheSameBitsOnAnyNumberOfReplicas) {
  const Outcome expected = outcome_of({.replicas = 1});
  for (int replicas = 2; replicas <= 4; ++replicas) {
    for (const Outcome& outcome : outcomes_of({.replicas = replicas}, [](Replica& r) { return train_small(r); })) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas");
      expect_equal(outcome, expected);
    }
  }
}

TEST(Trainer, GivesTheSameBitsWithAnyNumberOfWorkers) {
  const Outcome expected = outcome_of({.replicas = 1});

  expect_equal(outcome_of({.replicas = 1, .workers = 3}), expected);
  expect_equal(outcome_of({.replicas = 2, .workers = 2}), expected);
}

TEST(Trainer, GivesTheSameBitsWithAnyAssignmentOfShards) {
  const Outcome expected = outcome_of({.replicas = 1, .shards = 7});

  for (const std::vector<int>& assigned : {std::vector<int>{4, 3}, {1, 6}, {5, 1, 1}, {1, 4, 2}}) {
    const ThreadRun run{.replicas = static_cast<int>(assigned.size()), .shards = 7, .assigned = assigned, .workers = 2};
    for (const Outcome& outcome : outcomes_of(run, [](Replica& r) { return train_small(r); })) {
      expect_equal(outcome, expected);
    }
  }
}

TEST(Trainer, TakesAModelWithoutParameters) {
  const Outcome alone = outcomes_of({.replicas = 1}, train_without_parameters)[0];

  EXPECT_EQ(alone.step, 6);
  for (const Outcome& outcome : outcomes_of({.replicas = 3}, train_without_parameters)) expect_equal(outcome, alone);
}

TEST(Trainer, DependsOnTheSeed) {
  EXPECT_NE(outcome_of({.seed = 3}).digest, outcome_of({.seed = 4}).digest);
}

TEST(Trainer, CountsTheSamplesThatItsReplicasTrainedOn) {
  const auto counts = std::make_shared<AskedAt>(-1);

  outcome_of({.replicas = 2, .supervision = counts});

  EXPECT_EQ(counts->samples(), 2 * 53);
}

TEST(Trainer, MayBeLargerThanTheOneBeforeItOnAReplicaAlone) {
  Replica replica = Replica::alone();
  const Dataset data = from_tensors(Tensor(Shape{10, 4}), Tensor(Shape{10, 1})).batch(5);

  for (const std::int64_t width : {2, 64, 512}) {
    Trainer trainer(replica, Sequential{Input{4}, Dense{width}, Dense{1}}, SGD(0.01F), MeanSquaredError{});
    trainer.fit(data);
    EXPECT_EQ(trainer.step(), 2);
  }
}

TEST(Trainer, MayBeMadeAgainWhereTheFirstWasRefused) {
  Replica replica = Replica::alone();
  const Sequential model{Input{4}, Dense{1}};
  const std::vector<MetricHandle> twice = {MeanAbsoluteError{}, MeanAbsoluteError{}};
  EXPECT_THROW(Trainer(replica, model, SGD(0.01F), MeanSquaredError{}, twice), Error);

  Trainer trainer(replica, model, SGD(0.01F), MeanSquaredError{});

  EXPECT_EQ(trainer.step(), 0);
}

TEST(Trainer, RefusesASecondTrainerInOneRun) {
  Replica replica = Replica::alone();
  Trainer first(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_THROW(Trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true})), Error);
}

TEST(Trainer, SaysWhatIsWrongWithADataSet) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  const auto sentence_of_fit = [&](const Dataset& data) { return sentence_thrown_by([&] { trainer.fit(data); }); };
  const Dataset rows_of_seven = from_tensors(Tensor(Shape{4, 7}), Tensor(Shape{4}));
  const Dataset rows_of_targets = from_tensors(Tensor(Shape{4, 6, 6, 1}), Tensor(Shape{4, 2}));

  EXPECT_EQ(sentence_of_fit(small_data()), "the data set given to fit() has no batch size: end it with batch(n)");
  EXPECT_EQ(sentence_of_fit(small_data().take(0).batch(10)),
            "the data set given to fit() has no samples; look at its take() and skip(), which left none");
  EXPECT_EQ(sentence_of_fit(small_data(5).batch(10, {.drop_remainder = true})),
            "the data set given to fit() has 5 samples and no whole batch of 10; make batches smaller, or leave out "
            "drop_remainder");
  EXPECT_EQ(sentence_of_fit(rows_of_seven.batch(2)),
            "the data set given to fit() has samples of shape [7], the model takes [6, 6, 1]; give the samples that "
            "shape, for example by map(), or declare the model's input with theirs");
  EXPECT_EQ(sentence_of_fit(rows_of_targets.batch(2)),
            "the data set given to fit() has targets of shape [2] a sample, the loss takes []: pass a tensor of shape "
            "[n], not [n, 2]. It takes one number a sample, the class; one-hot rows are for CategoricalCrossentropy");
  EXPECT_EQ(sentence_thrown_by([&] { trainer.fit(small_data().batch(10), {.epochs = 0}); }),
            "fit() of 0 epochs: there must be at least 1");
  EXPECT_EQ(sentence_thrown_by([&] {
              trainer.predict(Tensor(Shape{2, 5}));
            }),
            "predict() takes a batch of samples, [n, 6, 6, 1], not [2, 5]");
}

TEST(Trainer, RefusesCallbacksOfOneName) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.1F), SparseCategoricalCrossentropy({.from_logits = true}));

  EXPECT_THROW(trainer.fit(small_data().batch(10), {.callbacks = {SumOfLosses(), SumOfLosses()}}), Error);
}

TEST(Trainer, WorksOnMoreShardsThanABatchHasSamples) {
  const auto train = [](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data(11).batch(4));
    return Outcome{trainer.weights_digest().hex(), trainer.step(), {}, {}, {}};
  };

  const Outcome alone = outcomes_of({.replicas = 1, .shards = 7}, train)[0];
  const Outcome mirrored = outcomes_of({.replicas = 5, .shards = 7}, train)[4];

  EXPECT_EQ(mirrored.digest, alone.digest);
  EXPECT_EQ(alone.step, 3);
}

TEST(Trainer, GivesTheSameBitsOnAnyNumberOfReplicasWithSchedulesAndClipping) {
  for (const auto& optimizer : clipping_optimizers()) {
    const auto train = [&](Replica& replica) { return train_with(replica, *optimizer); };
    const Outcome expected = outcomes_of({.replicas = 1}, train)[0];

    for (const int replicas : {2, 3, 4}) {
      SCOPED_TRACE(optimizer->configuration() + " on " + std::to_string(replicas));
      for (const Outcome& outcome : outcomes_of({.replicas = replicas}, train)) expect_equal(outcome, expected);
    }
  }
}

// One step with a rate of 1 moves all weights by the clipped gradient.
TEST(Trainer, ClipsTheGradientOfTheWholeBatch) {
  constexpr float kLimit = 0.25F;
  double squares = 0;
  train_on_threads({.replicas = 2}, [&](Replica& replica) {
    const Sequential model{Input{6, 6, 1}, Flatten{}, Dense{3, {.kernel_initializer = Initializer::zeros()}}};
    Trainer trainer(replica, model, SGD{{.learning_rate = 1, .global_clip_norm = kLimit}},
                    SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data(16).batch(16));
    if (replica.rank() > 0) return;
    for (const float weight : model.parameter_values()) squares += static_cast<double>(weight) * weight;
  });

  EXPECT_NEAR(std::sqrt(squares), kLimit, 1e-6);  // the scale and each product are rounded once
}

// It would be unclear which of the two applies.
TEST(Trainer, RefusesAnOptimizerThatClipsInTwoWays) {
  class TwoWays final : public SGD {
   public:
    std::unique_ptr<Optimizer> clone() const override { return std::make_unique<TwoWays>(*this); }
    GradientClipping clipping() const override { return {.value = 1.0F, .norm = 1.0F}; }
  };

  EXPECT_THROW(outcomes_of({}, [](Replica& replica) { return train_with(replica, TwoWays()); }), Error);
}

}  // namespace holdfast
