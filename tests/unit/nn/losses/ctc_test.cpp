#include "holdfast/nn/ctc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<float>;

const losses::CTC kOfThree({.classes = 3, .most_labels = 3});

// exp(score) of each class of each step, so that they add up to 1.
Numbers scores_of(const Numbers& probabilities) {
  Numbers scores;
  for (const float probability : probabilities) scores.push_back(std::log(probability));
  return scores;
}

// Two steps spell one label in three ways: label and blank, blank and label, and the label twice.
TEST(CTC, AddsAllWaysToSpellTheTarget) {
  const Numbers scores = scores_of({0.5F, 0.3F, 0.2F, 0.6F, 0.1F, 0.3F});

  EXPECT_NEAR(kOfThree.evaluate(scores, Numbers{1, 0, 0}, 1, 1, {}), -std::log(0.3 * 0.6 + 0.5 * 0.1 + 0.3 * 0.1),
              1e-6);
  EXPECT_NEAR(kOfThree.evaluate(scores, Numbers{1, 2, 0}, 1, 1, {}), -std::log(0.3 * 0.3), 1e-6);
  EXPECT_NEAR(kOfThree.evaluate(scores, Numbers{0, 0, 0}, 1, 1, {}), -std::log(0.5 * 0.6), 1e-6) << "no label";
}

// Two equal labels need a blank between them.
TEST(CTC, SpellsALabelTwiceAcrossABlankAlone) {
  const Numbers scores = scores_of({0.2F, 0.7F, 0.1F, 0.5F, 0.4F, 0.1F, 0.1F, 0.6F, 0.3F});

  EXPECT_NEAR(kOfThree.evaluate(scores, Numbers{1, 1, 0}, 1, 1, {}), -std::log(0.7 * 0.5 * 0.6), 1e-6);
}

TEST(CTC, HasTheSlopeOfItsLoss) {
  const Numbers targets = {1, 2, 2, 2, 0, 0};
  Numbers scores;
  for (int i = 0; i < 2 * 5 * 3; ++i) scores.push_back(static_cast<float>(i * 7 % 11) / 4 - 1);
  Numbers gradient(scores.size());

  kOfThree.evaluate(scores, targets, 2, 0.5F, gradient);

  for (std::size_t i = 0; i < scores.size(); ++i) {
    Numbers above = scores, below = scores;
    above[i] += 0x1p-6F;
    below[i] -= 0x1p-6F;
    // Each sample alone, so that f32 keeps digits of their difference.
    const std::size_t first = i / 15 * 15;
    const auto loss_of = [&](const Numbers& moved) {
      return kOfThree.evaluate(std::span(moved).subspan(first, 15), std::span(targets).subspan(first / 5, 3), 1, 1, {});
    };
    EXPECT_NEAR(gradient[i], 0.5F * (loss_of(above) - loss_of(below)) / 0x1p-5F, 1e-4) << i;
  }
}

// f32 has no probability of a thousand steps.
TEST(CTC, StaysFiniteOverManySteps) {
  const std::size_t steps = 2000;
  const Numbers scores(steps * 3, 0);
  Numbers gradient(scores.size(), 99);

  const float loss = kOfThree.evaluate(scores, Numbers{1, 2, 1}, 1, 1, gradient);

  EXPECT_GT(loss, 2000);
  EXPECT_LT(loss, 2000 * std::log(3.0));
  for (const float slope : gradient) ASSERT_LE(std::abs(slope), 1);
}

TEST(CTC, LetsANanShow) {
  Numbers scores(4 * 3, 0);
  scores[4] = std::numeric_limits<float>::quiet_NaN();

  EXPECT_TRUE(std::isnan(kOfThree.evaluate(scores, Numbers{1, 0, 0}, 1, 1, {})));
}

TEST(CTC, NamesTheSampleOfATargetThatNoOutputSpells) {
  const auto refusal = [](const Numbers& target) {
    Numbers targets = {1, 0, 0};
    targets.insert(targets.end(), target.begin(), target.end());
    return sentence_thrown_by([&] { kOfThree.evaluate(Numbers(2 * 3 * 3), targets, 2, 1, {}); });
  };

  EXPECT_THAT(refusal({1, 3, 0}),
              HasSubstr("sample 1 of 2 has the label 3 at place 1; labels are the whole numbers 1 to 2"));
  EXPECT_THAT(refusal({0.5F, 0, 0}), HasSubstr("has the label 0.5"));
  EXPECT_THAT(refusal({-1, 0, 0}), HasSubstr("has the label -1"));
  EXPECT_THAT(refusal({1, 0, 2}), HasSubstr("has the label 2 at place 2, after a 0"));
  EXPECT_THAT(refusal({1, 1, 2}), HasSubstr("which takes 4 steps; the output has 3"));
}

TEST(CTC, RefusesOptionsAndArraysThatDoNotFit) {
  EXPECT_THAT(sentence_thrown_by([] { losses::CTC({.classes = 1, .most_labels = 3}); }),
              HasSubstr("ctc was given .classes = 1; it is at least 2"));
  EXPECT_THAT(sentence_thrown_by([] { losses::CTC({.classes = 3}); }), HasSubstr(".most_labels = 0"));
  EXPECT_THAT(sentence_thrown_by([] {
                kOfThree.target_shape(Shape{5, 4});
              }),
              HasSubstr("ctc takes an output of steps and 3 classes, and was given one of the shape [5, 4]"));
  EXPECT_THAT(sentence_thrown_by([] { kOfThree.check_last_activation(Activation::softmax); }), HasSubstr("ctc"));
  EXPECT_THAT(sentence_thrown_by([] { kOfThree.evaluate(Numbers(10), Numbers(3), 1, 1, {}); }),
              HasSubstr("ctc was given 10 outputs, 3 targets"));
  EXPECT_EQ(kOfThree.target_shape(Shape{5, 3}), (Shape{3}));
}

TEST(CTC, IsZeroWithoutSamples) {
  EXPECT_EQ(kOfThree.evaluate({}, {}, 0, 1, {}), 0.0F);
}

}  // namespace
}  // namespace holdfast
