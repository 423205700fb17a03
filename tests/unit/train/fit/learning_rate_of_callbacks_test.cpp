// Callbacks set the learning rate, which is part of the training state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "support/thrown.h"
#include "unit/train/support/played_callbacks.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// A tenth of the rate in the second epoch.
CallbackHandle falling_in_the_second_epoch() {
  return LearningRateScheduler([](std::int64_t epoch, float rate) { return epoch == 1 ? rate / 10 : rate; });
}

// Falls after each epoch but the first, since nothing improves by so much.
CallbackHandle always_on_a_plateau() {
  return ReduceLROnPlateau({.monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 1000});
}

// The rate of a step follows from how often it was called, so a call too many or too few changes the weights.
CallbackHandle falling_before_each_step() {
  return LambdaCallback({.name = "falls",
                         .state = {{"calls", std::int64_t{0}}},
                         .on_step_begin = [](CallbackState& state, TrainingContext& context) {
                           const std::int64_t calls = ++std::get<std::int64_t>(state.at("calls"));
                           context.set_learning_rate(0.01F / static_cast<float>(calls));
                         }});
}

class NoRate final : public Optimizer {
 public:
  std::string name() const override { return "no_rate"; }
  std::string configuration() const override { return R"({"kind":"no_rate"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<NoRate>(*this); }
  std::vector<std::string> slot_names() const override { return {}; }
  void update(std::int64_t, std::span<float>, std::span<const float>,
              std::span<const std::span<float>>) const override {}
};

class DerivedAdam final : public Adam {
 public:
  using Adam::Adam;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<DerivedAdam>(*this); }
};

std::string refusal_of(const Optimizer& optimizer, float rate) {
  ThreadRun run;
  std::string sentence;
  outcomes_of(run, [&](Replica& replica) {
    const CallbackHandle callback =
        LambdaCallback({.on_epoch_begin = [rate](TrainingContext& context) { context.set_learning_rate(rate); }});
    sentence = sentence_thrown_by([&] { train_with(replica, optimizer, {callback}); });
    return Outcome{};
  });
  return sentence;
}

}  // namespace

TEST(LearningRateOfCallbacks, HasTheBitsOfTheSameRatesAsASchedule) {
  const auto digest_with = [](const Optimizer& optimizer, std::vector<CallbackHandle> callbacks, std::int64_t* steps) {
    const std::vector<Outcome> outcomes =
        outcomes_of({.replicas = 2}, [&](Replica& replica) { return train_with(replica, optimizer, callbacks); });
    if (steps != nullptr) *steps = outcomes.front().step;
    return outcomes.front().digest;
  };
  std::int64_t steps = 0;

  const std::string set = digest_with(Adam(0.01F), {falling_in_the_second_epoch()}, &steps);
  const PiecewiseConstantDecay scheduled({steps / 2 - 1}, {0.01F, 0.01F / 10});

  EXPECT_EQ(set, digest_with(Adam(LearningRate(scheduled)), {}, nullptr));
  EXPECT_NE(set, digest_with(Adam(0.01F), {}, nullptr));
}

TEST(LearningRateOfCallbacks, ComesBackFromASavepointWithTheSameBits) {
  const auto outcome_with = [](const ThreadRun& run, std::int64_t fail_at) {
    return outcomes_of(run,
                       [&](Replica& replica) {
                         return train_small(
                             replica, {always_on_a_plateau(), ModelCheckpoint({.every_steps = 2}), FailAt(fail_at)}, 4);
                       })
        .front();
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = outcome_with({.replicas = 2, .run_directory = undisturbed.path()}, 0);
  for (const std::int64_t step :
       std::vector<std::int64_t>{3, expected.step / 2, expected.step / 2 + 1, expected.step - 1}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      EXPECT_THROW(outcome_with({.replicas = 2, .run_directory = folder.path()}, step), std::runtime_error);

      expect_equal(outcome_with({.replicas = replicas, .run_directory = folder.path()}, 0), expected);
    }
  }
}

TEST(LearningRateOfCallbacks, IsThatOfTheStepBeforeWhichItIsSet) {
  class OfTheStep final : public LearningRateSchedule {
   public:
    std::string configuration() const override { return R"({"kind":"of_the_step"})"; }
    std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<OfTheStep>(*this); }
    float rate_after(std::int64_t updates) const override { return 0.01F / static_cast<float>(updates + 1); }
  };
  const auto digest_with = [](const Optimizer& optimizer, const std::vector<CallbackHandle>& callbacks) {
    return outcomes_of({}, [&](Replica& replica) { return train_with(replica, optimizer, callbacks); }).front().digest;
  };

  EXPECT_EQ(digest_with(Adam(0.5F), {falling_before_each_step()}), digest_with(Adam(LearningRate(OfTheStep())), {}));
}

TEST(LearningRateOfCallbacks, IsSetOnceForEachStepThroughFailures) {
  const auto outcome_with = [](const ThreadRun& run, std::int64_t fail_at) {
    return outcomes_of(run,
                       [&](Replica& replica) {
                         return train_small(
                             replica,
                             {falling_before_each_step(), ModelCheckpoint({.every_steps = 1}), FailAt(fail_at)}, 3);
                       })
        .front();
  };
  const TemporaryFolder undisturbed;
  const Outcome expected = outcome_with({.replicas = 2, .run_directory = undisturbed.path()}, 0);
  for (std::int64_t step = 1; step < expected.step; ++step) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("failure at step " + std::to_string(step) + ", going on with " + std::to_string(replicas));
      const TemporaryFolder folder;
      EXPECT_THROW(outcome_with({.replicas = 2, .run_directory = folder.path()}, step), std::runtime_error);

      expect_equal(outcome_with({.replicas = replicas, .run_directory = folder.path()}, 0), expected);
    }
  }
}

TEST(LearningRateOfCallbacks, IsSeenByCallbacksAndStaysForTheNextFit) {
  std::vector<float> seen;
  const CallbackHandle looking = LambdaCallback(
      {.on_epoch_begin = [&](TrainingContext& context) { seen.push_back(context.learning_rate().value()); }});
  outcomes_of({}, [&](Replica& replica) {
    Trainer trainer(replica, small_model(), SGD(0.5F), SparseCategoricalCrossentropy({.from_logits = true}));
    const CallbackHandle halving = LearningRateScheduler([](std::int64_t, float rate) { return rate / 2; });
    trainer.fit(small_data().batch(16), {.epochs = 2, .callbacks = {halving, looking}});
    trainer.fit(small_data().batch(16), {.epochs = 1, .callbacks = {looking}});
    return Outcome{};
  });

  EXPECT_THAT(seen, testing::ElementsAre(0.25F, 0.125F, 0.125F));
}

TEST(LearningRateOfCallbacks, IsRefusedWhereItWouldBeWrong) {
  const ExponentialDecay schedule(0.1F, 10, 0.5F);
  EXPECT_THAT(refusal_of(SGD(LearningRate(schedule)), 0.1F), HasSubstr("follows a schedule"));
  EXPECT_THAT(refusal_of(NoRate(), 0.1F), HasSubstr("the optimizer no_rate has none that callbacks may change"));
  EXPECT_THAT(refusal_of(DerivedAdam(0.1F), 0.1F), HasSubstr("derives from another one"));
  EXPECT_THAT(refusal_of(SGD(0.1F), -0.1F), HasSubstr("learning_rate"));
}

}  // namespace holdfast
