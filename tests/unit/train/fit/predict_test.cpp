// Outputs that all replicas compute together. Bits are compared exactly.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const SparseCategoricalCrossentropy kOfScores{{.from_logits = true}};

std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

// What each rank gets: the whole outputs.
std::vector<std::vector<float>> predicted(const ThreadRun& run, const Dataset& data) {
  std::vector<std::vector<float>> outputs(static_cast<std::size_t>(run.replicas));
  train_on_threads(run, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);
    trainer.fit(small_data().batch(10));
    outputs[static_cast<std::size_t>(replica.rank())] = values_of(trainer.predict(data));
  });
  return outputs;
}

TEST(Predict, GivesTheSameBitsOnAllRanksOfAnyNumberOfReplicas) {
  const Dataset data = small_data(31).batch(7);
  const std::vector<float> expected = predicted({}, data)[0];
  ASSERT_EQ(expected.size(), 31U * 3);

  for (const int replicas : {2, 3, 4}) {
    for (const std::vector<float>& outputs : predicted({.replicas = replicas}, data)) EXPECT_EQ(outputs, expected);
  }
  EXPECT_EQ(predicted({.replicas = 2, .workers = 2}, data)[0], expected);
  EXPECT_EQ(predicted({.replicas = 2, .assigned = {3, 1}}, data)[1], expected);
  EXPECT_EQ(predicted({.replicas = 2}, data.prefetch(2, {.threads = 2}))[1], expected);
}

TEST(Predict, HasTheOrderOfTheData) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);
  const Dataset data = small_data(11);
  Tensor features(Shape{11, 6, 6, 1});
  Tensor label(Shape{11});
  for (std::int64_t i = 0; i < 11; ++i) data.load(0, 0, i, {features.sample(i), label.sample(i)});

  const std::vector<float> together = values_of(trainer.predict(data.batch(4)));
  const std::vector<float> alone = values_of(trainer.predict(features));

  ASSERT_EQ(together.size(), alone.size());
  // The kernels for other numbers of samples add in other orders.
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[i], alone[i], 1e-5) << i;
}

TEST(Predict, LeavesOutTheRemainderOfTheDataThatDropsIt) {
  EXPECT_EQ(predicted({.replicas = 2}, small_data(31).batch(7, {.drop_remainder = true}))[1].size(), 28U * 3);
}

TEST(Predict, TakesMoreShardsThanABatchHasSamples) {
  const Dataset data = small_data(5).batch(3);

  EXPECT_EQ(predicted({.replicas = 3, .shards = 7}, data)[2], predicted({.shards = 7}, data)[0]);
}

// 2^32 + 1 would be row 1.
TEST(Predict, RefusesIdsThatDoNotFit) {
  Replica replica = Replica::alone();
  const Value ids = input({2}, {.dtype = DType::i64, .name = "ids"});
  Trainer trainer(replica, Model(ids, Flatten{}(Embedding{4, 2}(ids))), SGD(0.01F), MeanSquaredError{});
  const Tensor wide(Shape{2, 2}, std::vector<std::int64_t>{0, 1, 2, 4294967297});

  EXPECT_THAT(sentence_thrown_by([&] { trainer.predict(wide); }),
              HasSubstr("element 1 of array 0 (\"ids\" of i64 [2]) of sample 1 is 4294967297"));
}

// The targets of such data are of any shape.
TEST(Predict, LooksAtNoTargets) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);
  const Dataset data = from_tensors({{"", Tensor(Shape{4, 6, 6, 1})}},
                                    {{"id", Tensor(Shape{4, 5}, std::vector<std::int32_t>(20))}}, Tensor(Shape{4}));

  EXPECT_EQ(trainer.predict(data.batch(4)).shape(), (Shape{4, 3}));
}

TEST(Predict, GivesASinkTheBatchesInOrder) {
  const Dataset data = small_data(17).batch(7);
  const std::vector<float> expected = predicted({}, data)[0];
  train_on_threads({.replicas = 3}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);
    trainer.fit(small_data().batch(10));
    std::vector<std::int64_t> first_samples;
    std::vector<float> outputs;

    trainer.predict(data, [&](std::int64_t first_sample, const std::vector<Tensor>& batch) {
      first_samples.push_back(first_sample);
      ASSERT_EQ(batch.size(), 1U);
      outputs.insert(outputs.end(), batch[0].values().begin(), batch[0].values().end());
    });

    EXPECT_THAT(first_samples, ElementsAre(0, 7, 14));
    EXPECT_EQ(outputs, expected);
  });
}

TEST(Predict, GivesASinkAllOutputsOfAModel) {
  const Value x = input({6, 6, 1});
  const Value flat = Flatten{}(x);
  const Model model({x}, {Dense{2, {.name = "a"}}(flat), Dense{3, {.name = "b"}}(flat)});
  std::vector<std::vector<float>> of_one;
  for (const int replicas : {1, 2}) {
    train_on_threads({.replicas = replicas}, [&](Replica& replica) {
      Trainer trainer(replica, model, SGD(0.01F), {MeanSquaredError{}, MeanSquaredError{}});
      std::vector<std::vector<float>> outputs(2);

      trainer.predict(small_data(9).batch(5), [&](std::int64_t, const std::vector<Tensor>& batch) {
        for (std::size_t i = 0; i < 2; ++i) {
          outputs[i].insert(outputs[i].end(), batch[i].values().begin(), batch[i].values().end());
        }
      });

      EXPECT_EQ(outputs[0].size(), 18U);
      EXPECT_EQ(outputs[1].size(), 27U);
      if (replicas == 1) of_one = outputs;
      EXPECT_EQ(outputs, of_one);
      EXPECT_THAT(sentence_thrown_by([&] { trainer.predict(small_data(9).batch(5)); }), HasSubstr("has 2 outputs"));
    });
  }
}

struct Calls {
  std::vector<float> outputs;
  int sink_calls = 0;
  std::string refusal;
};

// fit(), predict() with and without a sink, and perhaps another fit().
Calls calls_of(Replica& replica, bool has_second_fit) {
  Calls calls;
  Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);
  trainer.fit(small_data().batch(10), {.callbacks = {ModelCheckpoint({.every_steps = 1})}});
  trainer.predict(small_data(9).batch(5), [&](std::int64_t, const std::vector<Tensor>&) { ++calls.sink_calls; });
  try {
    calls.outputs = values_of(trainer.predict(small_data(9).batch(5)));
  } catch (const Error& failure) {
    calls.refusal = failure.what();
    return calls;
  }
  if (has_second_fit) trainer.fit(small_data().batch(20), {.callbacks = {ModelCheckpoint({.every_steps = 1})}});
  return calls;
}

Calls calls_of_start(const TemporaryFolder& folder, int replicas, bool has_second_fit) {
  std::vector<Calls> calls(static_cast<std::size_t>(replicas));
  train_on_threads({.replicas = replicas, .run_directory = folder.path()}, [&](Replica& replica) {
    calls[static_cast<std::size_t>(replica.rank())] = calls_of(replica, has_second_fit);
  });
  return calls.back();
}

TEST(Predict, IsComputedAgainByARunThatStartsAgain) {
  const TemporaryFolder folder;
  const Calls first = calls_of_start(folder, 2, false);
  ASSERT_EQ(first.outputs.size(), 27U);

  // The last savepoint is of the fit(), so the predictions are calls to come.
  const Calls again = calls_of_start(folder, 3, false);

  EXPECT_EQ(again.outputs, first.outputs);
  EXPECT_EQ(again.sink_calls, 2);
}

TEST(Predict, IsRefusedWhereALaterFitHasChangedTheWeights) {
  const TemporaryFolder folder;
  EXPECT_EQ(calls_of_start(folder, 2, true).sink_calls, 2);

  const Calls again = calls_of_start(folder, 2, true);

  EXPECT_THAT(again.refusal, HasSubstr("predict(), call 3 of the Trainer, had finished before this start"));
  EXPECT_EQ(again.sink_calls, 0);  // the first start gave it all batches
}

TEST(Predict, SaysWhatIsWrongWithItsArguments) {
  Replica replica = Replica::alone();
  Trainer trainer(replica, small_model(), SGD(0.01F), kOfScores);

  EXPECT_THAT(sentence_thrown_by([&] { trainer.predict(small_data()); }), HasSubstr("predict() has no batch size"));
  EXPECT_THAT(sentence_thrown_by([&] {
                trainer.predict(from_tensors(Tensor(Shape{4, 7}), Tensor(Shape{4})).batch(2));
              }),
              HasSubstr("has samples of shape [7], the model takes [6, 6, 1]"));
  EXPECT_THAT(sentence_thrown_by([&] { trainer.predict(small_data().batch(2), Trainer::PredictionSink()); }),
              HasSubstr("an empty function"));
}

}  // namespace
}  // namespace holdfast
