// Optimizers on a pretended device, whose arithmetic is the CPU's. Trainings must give the results of the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "support/program.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// An optimizer of an application that knows the host's arrays alone.
class HostMomentum final : public Optimizer {
 public:
  std::string name() const override { return "host_momentum"; }
  std::string configuration() const override { return R"({"kind":"host_momentum"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<HostMomentum>(*this); }
  std::vector<std::string> slot_names() const override { return {"momentum"}; }
  void update(std::int64_t, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      slots[0][i] = slots[0][i] * 0.9F + gradients[i];
      parameters[i] -= 0.01F * slots[0][i];
    }
  }
};

// The same rule, described.
class DescribedMomentum final : public DescribedOptimizer {
 public:
  std::string name() const override { return "described_momentum"; }
  std::string configuration() const override { return R"({"kind":"described_momentum"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<DescribedMomentum>(*this); }
  std::vector<std::string> slot_names() const override { return {"momentum"}; }

 protected:
  std::vector<double> numbers(std::int64_t) const override { return {}; }
  Updated describe(const Elements& of) const override {
    const Value momentum = of.slots[0] * 0.9F + of.gradient;
    return {.parameter = of.parameter - 0.01F * momentum, .slots = {momentum}};
  }
};

// Moves padding, too.
class Drifting final : public DescribedOptimizer {
 public:
  std::string name() const override { return "drifting"; }
  std::string configuration() const override { return R"({"kind":"drifting"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Drifting>(*this); }
  std::vector<std::string> slot_names() const override { return {}; }

 protected:
  std::vector<double> numbers(std::int64_t) const override { return {1}; }
  Updated describe(const Elements& of) const override { return {.parameter = of.parameter + 1.0F, .slots = {}}; }
};

class OptimizersOnADevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
  }
  static void TearDownTestSuite() { ::unsetenv("HOLDFAST_CUDA_LIBRARY"); }

  static Outcome outcome_with(const Optimizer& optimizer, const std::string& device, int replicas = 1) {
    return outcomes_of({.replicas = replicas, .device = device},
                       [&](Replica& replica) { return train_with(replica, optimizer); })[0];
  }
};

TEST_F(OptimizersOnADevice, GiveTheBitsOfTheCpu) {
  const std::vector<std::shared_ptr<const Optimizer>> optimizers = {
      std::make_shared<RMSprop>(RMSpropOptions{.momentum = 0.9F, .centered = true, .weight_decay = 0.1F}),
      std::make_shared<Adagrad>(AdagradOptions{.learning_rate = CosineDecay{0.1F, 10}}),
      std::make_shared<Adadelta>(AdadeltaOptions{.learning_rate = 1, .clip_norm = 0.05F}),
      std::make_shared<Adamax>(),
      std::make_shared<Nadam>(NadamOptions{.weight_decay = 0.1F}),
      std::make_shared<Lion>(LionOptions{.weight_decay = 0.1F}),
      std::make_shared<Lamb>(LambOptions{.weight_decay = 0.1F}),
      std::make_shared<Adam>(AdamOptions{.amsgrad = true}),
      std::make_shared<Ftrl>(FtrlOptions{.learning_rate = 0.1F, .l1_regularization_strength = 0.01F}),
      std::make_shared<ScheduleFreeAdamW>(ScheduleFreeAdamWOptions{.warmup_steps = 3, .weight_decay = 0.1F}),
      std::make_shared<Muon>(MuonOptions{.learning_rate = 0.01F}),
      std::make_shared<Adam>(AdamOptions{.use_ema = true, .ema_momentum = 0.5F, .ema_overwrite_frequency = 3})};
  for (const auto& optimizer : optimizers) {
    SCOPED_TRACE(optimizer->configuration());

    expect_equal(outcome_with(*optimizer, "cuda:0"), outcome_with(*optimizer, "cpu"));
  }
}

TEST_F(OptimizersOnADevice, GiveTheSameBitsOnSeveralReplicas) {
  const RMSprop optimizer{{.momentum = 0.9F, .centered = true}};

  expect_equal(outcome_with(optimizer, "cpu", 2), outcome_with(optimizer, "cpu"));
}

TEST_F(OptimizersOnADevice, AreComputedOnTheHostIfTheyDescribeNothing) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const Outcome expected = outcome_with(HostMomentum{}, "cpu");
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.starts_with("optimizer ")) lines.emplace_back(line);
  });

  const Outcome outcome = outcome_with(HostMomentum{}, "cuda:0");

  set_log_sink({});
  expect_equal(outcome, expected);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("optimizer host_momentum is computed on the host"));
}

TEST_F(OptimizersOnADevice, AreComputedThereIfTheyAreDescribed) {
  const Outcome expected = outcome_with(HostMomentum{}, "cpu");

  expect_equal(outcome_with(DescribedMomentum{}, "cpu"), expected);
  expect_equal(outcome_with(DescribedMomentum{}, "cuda:0"), expected);
}

TEST_F(OptimizersOnADevice, ThatMovePaddingAreRefusedWhenATrainerIsMade) {
  Replica replica = Replica::alone({.seed = 3, .shards = 4});
  try {
    const Trainer trainer(replica, small_model(), Drifting{}, SparseCategoricalCrossentropy({.from_logits = true}));
    FAIL() << "took an update that moves padding";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("optimizer drifting: where parameter, gradient and slots are 0"));
  }
}

}  // namespace
}  // namespace holdfast
