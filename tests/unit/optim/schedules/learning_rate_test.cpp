#include "holdfast/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/optim/piecewise_constant_decay.h"

namespace holdfast {
namespace {

class RateOf final : public LearningRateSchedule {
 public:
  explicit RateOf(float rate) : rate_(rate) {}

  std::string configuration() const override { return R"({"kind":"rate_of"})"; }
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<RateOf>(*this); }
  float rate_after(std::int64_t) const override { return rate_; }

 private:
  float rate_;
};

TEST(LearningRate, IsTheNumberThatItWasGiven) {
  const LearningRate rate = 0.25F;

  EXPECT_EQ(rate.of_update(1), 0.25F);
  EXPECT_EQ(rate.of_update(1'000'000), 0.25F);
  EXPECT_EQ(rate.configuration(), "0.25");
  EXPECT_EQ(rate.constant(), 0.25F);
}

TEST(LearningRate, AsksTheScheduleForTheUpdatesBefore) {
  const LearningRate rate = PiecewiseConstantDecay{{0, 1}, {1.0F, 2.0F, 3.0F}};

  EXPECT_EQ(rate.of_update(1), 1.0F);
  EXPECT_EQ(rate.of_update(2), 2.0F);
  EXPECT_EQ(rate.of_update(3), 3.0F);
  EXPECT_EQ(rate.constant(), std::nullopt);
}

TEST(LearningRate, RefusesARateThatNoUpdateCanHave) {
  for (const float wrong : {-0.5F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const LearningRate rate = RateOf(wrong);
    try {
      rate.of_update(7);
      ADD_FAILURE() << "took " << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("rate_of"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("step 7"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace holdfast
