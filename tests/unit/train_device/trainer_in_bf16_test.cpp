// Trainings in bf16 on the CPU, with ranks that are threads: the bits depend on the precision, and on nothing that a
// run may change.

#include <gtest/gtest.h>

#include <ostream>
#include <stdexcept>

#include "holdfast/format/array_file.h"
#include "support/cpu_bf16.h"
#include "support/temporary_folder.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr std::int64_t kLength = 12;

Model small_gpt() {
  return gpt2({.vocabulary = 20, .positions = kLength, .width = 24, .layers = 2, .heads = 3, .recomputes = true});
}

Dataset small_text() {
  constexpr std::int64_t kSamples = 23;
  Tensor ids(Shape{kSamples, kLength}, DType::i32), next(Shape{kSamples, kLength}, DType::i32);
  for (std::int64_t i = 0; i < kSamples * kLength; ++i) {
    ids.elements<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * i % 20);
    next.elements<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((i + 1) * (i + 1) % 20);
  }
  return from_tensors(std::move(ids), std::move(next));
}

Outcome train_gpt(Replica& replica, std::vector<CallbackHandle> callbacks = {}) {
  Trainer trainer(replica, small_gpt(), AdamW(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
  const Dataset data = small_text().shuffle().batch(8);
  const FitResult fit = trainer.fit(data, {.epochs = 3, .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data), fit.history};
}

// Whose forward passes go over the last product in tiles.
Outcome train_lstm_in_tiles(Replica& replica, std::vector<CallbackHandle> callbacks = {}) {
  const Value ids = input({kLength}, {.dtype = DType::i32});
  const Model model(ids, Dense{20}(LSTM{8, {.return_sequences = true}}(Embedding{20, 6}(ids))));
  Trainer trainer(replica, model, Adam(0.01F),
                  SparseCategoricalCrossentropy({.from_logits = true, .positions_at_once = 7}));
  const FitResult fit = trainer.fit(small_text().batch(8), {.epochs = 2, .callbacks = std::move(callbacks)});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

using Train = Outcome (*)(Replica& replica, std::vector<CallbackHandle> callbacks);

// Convolution, batch normalization and dense layers.
Outcome train_images(Replica& replica, std::vector<CallbackHandle> callbacks) {
  return train_small(replica, std::move(callbacks));
}

struct Case {
  const char* name;
  Train train;
};

void PrintTo(const Case& training, std::ostream* out) {
  *out << training.name;
}

class TrainingsInBf16 : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
  }

  static Outcome outcome(ThreadRun run, const MakeCallbacks& callbacks = no_callbacks) {
    run.precision = Precision::bf16;
    return outcomes_of(run, [&](Replica& replica) { return GetParam().train(replica, callbacks()); })[0];
  }
};

INSTANTIATE_TEST_SUITE_P(Models, TrainingsInBf16,
                         testing::Values(Case{"images", train_images}, Case{"gpt", train_gpt},
                                         Case{"lstm_in_tiles", train_lstm_in_tiles}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(TrainingsInBf16, GiveTheSameBitsOnAnyNumberOfReplicasAndWorkers) {
  const Outcome expected = outcome({.replicas = 1});

  for (const int replicas : {2, 3, 4}) expect_equal(outcome({.replicas = replicas}), expected);
  expect_equal(outcome({.replicas = 1, .workers = 3}), expected);
}

TEST_P(TrainingsInBf16, GoOnFromASavepointWithTheSameBits) {
  const Outcome expected = outcome({.replicas = 2});
  for (const int replicas : {1, 4}) {
    const TemporaryFolder folder;
    const MakeCallbacks failing = []() -> std::vector<CallbackHandle> {
      return {ModelCheckpoint({.every_steps = 2}), FailAt(5)};
    };
    EXPECT_THROW(outcome({.replicas = 2, .run_directory = folder.path()}, failing), std::runtime_error);

    expect_equal(outcome({.replicas = replicas, .run_directory = folder.path()}, checkpoint_every_two), expected);
  }
}

TEST_P(TrainingsInBf16, DifferFromThoseInF32) {
  const Outcome f32 = outcomes_of({}, [](Replica& replica) { return GetParam().train(replica, {}); })[0];

  EXPECT_NE(outcome({}).digest, f32.digest);
}

// What is rounded is derived in each step, so savepoints do not have it.
TEST_P(TrainingsInBf16, SaveTheSameArraysAsThoseInF32) {
  const auto arrays = [](Precision precision) {
    const TemporaryFolder folder;
    outcomes_of({.run_directory = folder.path(), .precision = precision},
                [](Replica& replica) { return GetParam().train(replica, checkpoint()); });
    std::vector<std::string> described;
    const auto file = format::ArrayFile::open(posix_file_system(), folder / savepoint_files(folder.path()).front());
    for (const format::ArrayInfo& array : file.arrays()) {
      described.push_back(array.name + " " + std::string(name(array.dtype)) + " " + std::to_string(size_bytes(array)));
    }
    return described;
  };

  EXPECT_EQ(arrays(Precision::bf16), arrays(Precision::f32));
}

TEST(PrecisionsOfCpus, AreRefusedIfTheCpuHasNone) {
  EXPECT_THROW(static_cast<void>(Replica::alone({.precision = Precision::tf32})), Error);
  if (obstacle_of_bf16().empty()) {
    EXPECT_NO_THROW(static_cast<void>(Replica::alone({.precision = Precision::bf16})));
  } else {
    EXPECT_THROW(static_cast<void>(Replica::alone({.precision = Precision::bf16})), Error);
  }
}

}  // namespace
}  // namespace holdfast
