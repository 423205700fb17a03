// When a step is not applied because the host of this rank is cut off from the run.

#include "train/step/step_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/holdfast.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes down its phases.
class PlayedStep final : public Step {
 public:
  bool has_divisors() const override { return false; }
  void sum_divisors() override {}
  void share_divisors() override {}
  void forward_and_backward() override { phases.emplace_back("compute"); }
  StepSum sum_over_ranks() override {
    phases.emplace_back("sum");
    return {};
  }
  StepOutcome agree(StepSum&) override { return {.is_to_apply = true}; }
  void update(const StepSum&) override { phases.emplace_back("update"); }

  std::vector<std::string> phases;
};

class Fenced final : public NoSupervision {
 public:
  bool may_change() const override { return !is_fenced; }
  void count_samples(std::int64_t samples) override { counted += samples; }

  bool is_fenced = false;
  std::int64_t counted = 0;
};

class StepOfAHost : public ::testing::Test {
 protected:
  StepOutcome train() {
    WatchedStep watched(step_, supervision_, faulty_, 7, 16);
    return carry_out(watched);
  }

  Fenced supervision_;
  ModelTrainable model_{Sequential{Input{2}, Dense{1}}, Adam(0.01F), {MeanSquaredError{}}, {}};
  FaultyTrainable faulty_{supervision_, model_};
  PlayedStep step_;
};

TEST_F(StepOfAHost, IsAppliedWhileTheHostMayChangeItsState) {
  train();

  EXPECT_THAT(step_.phases, ElementsAre("compute", "sum", "update"));
  EXPECT_EQ(supervision_.counted, 16);
}

TEST_F(StepOfAHost, EndsTheGenerationInsteadOfAnUpdateOnceTheHostIsCutOff) {
  supervision_.is_fenced = true;

  EXPECT_THAT([&] { train(); }, testing::ThrowsMessage<GenerationEnded>(HasSubstr("update 8 is not applied here")));

  EXPECT_THAT(step_.phases, ElementsAre("compute", "sum"));
  EXPECT_EQ(supervision_.counted, 0);
}

}  // namespace
}  // namespace holdfast
