#include "holdfast/nn/loss.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "holdfast/nn/binary_crossentropy.h"
#include "holdfast/nn/categorical_crossentropy.h"
#include "holdfast/nn/mean_squared_error.h"
#include "holdfast/nn/sparse_categorical_crossentropy.h"
#include "support/special_floats.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::HasSubstr;
using Floats = std::vector<float>;

// The loss of one sample, written as in textbooks and computed in double.
using ReferenceLoss = std::function<double(const std::vector<double>& output, const Floats& target)>;

double log_softmax(const std::vector<double>& scores, std::size_t position) {
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  return scores[position] - std::log(sum);
}

double log_share(const std::vector<double>& outputs, std::size_t position) {
  double sum = 0;
  for (const double output : outputs) sum += output;
  return std::log(outputs[position] / sum);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

using LogProbability = double (*)(const std::vector<double>&, std::size_t);

ReferenceLoss sparse_reference(LogProbability log_probability) {
  return [=](const std::vector<double>& output, const Floats& target) {
    return -log_probability(output, static_cast<std::size_t>(target[0]));
  };
}

ReferenceLoss categorical_reference(LogProbability log_probability) {
  return [=](const std::vector<double>& output, const Floats& target) {
    double loss = 0;
    for (std::size_t c = 0; c < output.size(); ++c) loss -= target[c] * log_probability(output, c);
    return loss;
  };
}

constexpr float kSmoothing = 0.25F;

// As torch.nn.CrossEntropyLoss(label_smoothing=0.25).
double smoothed_reference(const std::vector<double>& output, const Floats& target) {
  double mean = 0;
  for (std::size_t i = 0; i < output.size(); ++i) mean += log_softmax(output, i) / static_cast<double>(output.size());
  const double of_label = log_softmax(output, static_cast<std::size_t>(target[0]));
  return -(1 - static_cast<double>(kSmoothing)) * of_label - static_cast<double>(kSmoothing) * mean;
}

ReferenceLoss elementwise_reference(double (*element_loss)(double output, double target)) {
  return [=](const std::vector<double>& output, const Floats& target) {
    double loss = 0;
    for (std::size_t i = 0; i < output.size(); ++i) loss += element_loss(output[i], target[i]);
    return loss / static_cast<double>(output.size());
  };
}

double binary_loss(double p, double t) {
  return -t * std::log(p) - (1 - t) * std::log(1 - p);
}
double binary_logit_loss(double x, double t) {
  return binary_loss(sigmoid(x), t);
}
double squared_loss(double output, double target) {
  return (output - target) * (output - target);
}

struct LossCase {
  std::string name;
  std::shared_ptr<const Loss> loss;
  ReferenceLoss reference;
  enum class Outputs { scores, probabilities } outputs;
  enum class Targets { class_index, distribution, probabilities } targets;
};

void PrintTo(const LossCase& test_case, std::ostream* stream) {
  *stream << test_case.name;
}

constexpr std::size_t kLossRows = 7;
constexpr std::size_t kElements = 5;

class EveryLoss : public testing::TestWithParam<LossCase> {
 protected:
  const Loss& loss() const { return *GetParam().loss; }

  Floats outputs() const {
    Random random(1, Purpose::user, 0, 0);
    Floats values(kLossRows * kElements);
    const bool are_scores = GetParam().outputs == LossCase::Outputs::scores;
    // Probabilities keep away from 0 and 1, where they would be clipped.
    for (float& value : values) value = are_scores ? 3 * random.normal() : 0.1F + 0.8F * random.uniform();
    return values;
  }

  Floats targets() const {
    Random random(2, Purpose::user, 0, 0);
    const bool are_classes = GetParam().targets == LossCase::Targets::class_index;
    Floats values(are_classes ? kLossRows : kLossRows * kElements);
    for (float& value : values) value = are_classes ? static_cast<float>(random.below(kElements)) : random.uniform();
    return values;
  }

  double reference(const std::vector<double>& outputs, const Floats& targets) const {
    const std::size_t target_elements = targets.size() / kLossRows;
    double sum = 0;
    for (std::size_t i = 0; i < kLossRows; ++i) {
      const std::vector<double> output(outputs.begin() + static_cast<std::ptrdiff_t>(i * kElements),
                                       outputs.begin() + static_cast<std::ptrdiff_t>((i + 1) * kElements));
      const Floats target(targets.begin() + static_cast<std::ptrdiff_t>(i * target_elements),
                          targets.begin() + static_cast<std::ptrdiff_t>((i + 1) * target_elements));
      sum += GetParam().reference(output, target);
    }
    return sum;
  }
};

// Float exponentials and one rounding of the result: each sample's loss is off by less than 16 roundings of its own
// size or of 1.
TEST_P(EveryLoss, SumsTheTextbookLoss) {
  const Floats values = outputs();
  const double expected = reference({values.begin(), values.end()}, targets());

  const float sum = loss().evaluate(values, targets(), kLossRows, 1, {});

  EXPECT_NEAR(sum, expected, 16 * 0x1p-24 * (kLossRows + std::abs(expected)));
}

// Central differences of the double reference with h = 1e-4: the cut-off term h^2 / 6 |f'''| is below 1e-5 here
// (probabilities of at least 0.1 give |f'''| <= 2 / 0.1^3 = 2000), the difference of doubles adds 1e-11, and the float
// gradient, of size 10 at most, 16 roundings: 1e-5.
TEST_P(EveryLoss, HasTheGradientOfFiniteDifferences) {
  constexpr double kStep = 1e-4;
  constexpr float kScale = 0.25F;
  Floats gradient(kLossRows * kElements);

  loss().evaluate(outputs(), targets(), kLossRows, kScale, gradient);

  const Floats values = outputs();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    std::vector<double> above(values.begin(), values.end());
    std::vector<double> below = above;
    above[i] += kStep;
    below[i] -= kStep;
    const double expected = kScale * (reference(above, targets()) - reference(below, targets())) / (2 * kStep);
    EXPECT_NEAR(gradient[i], expected, 2e-5) << i;
  }
}

TEST_P(EveryLoss, GivesTheSameSumWithAndWithoutAGradient) {
  Floats gradient(kLossRows * kElements);

  const float with = loss().evaluate(outputs(), targets(), kLossRows, 1, gradient);
  const float without = loss().evaluate(outputs(), targets(), kLossRows, 1, {});

  EXPECT_EQ(with, without);
}

TEST_P(EveryLoss, GivesASampleTheSameGradientInAnyBatch) {
  Floats whole(kLossRows * kElements);
  Floats last(kElements);
  const Floats all_outputs = outputs();
  const Floats all_targets = targets();
  const std::size_t target_elements = all_targets.size() / kLossRows;

  loss().evaluate(all_outputs, all_targets, kLossRows, 1, whole);
  loss().evaluate(std::span(all_outputs).last(kElements), std::span(all_targets).last(target_elements), 1, 1, last);

  EXPECT_TRUE(std::equal(last.begin(), last.end(), whole.end() - kElements));
}

TEST_P(EveryLoss, IsZeroOverNoSamples) {
  EXPECT_EQ(loss().evaluate({}, {}, 0, 1, {}), 0.0F);
}

TEST_P(EveryLoss, LetsANanShow) {
  Floats broken = outputs();
  broken[1] = std::numeric_limits<float>::quiet_NaN();

  EXPECT_TRUE(std::isnan(loss().evaluate(broken, targets(), kLossRows, 1, {})));
}

TEST_P(EveryLoss, RefusesSpansThatDoNotFitTogether) {
  Floats short_gradient(3);
  const auto expect_refused = [&](const Floats& some_outputs, const Floats& some_targets, std::int64_t samples,
                                  std::span<float> gradient) {
    try {
      loss().evaluate(some_outputs, some_targets, samples, 1, gradient);
      ADD_FAILURE() << "took " << some_outputs.size() << " outputs, " << some_targets.size() << " targets, " << samples
                    << " samples, a gradient of " << gradient.size();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(loss().name()));
    }
  };

  expect_refused(Floats(7), Floats(7), 2, {});
  expect_refused(Floats(7), Floats(7), -1, {});
  expect_refused(Floats(7), Floats(7), 0, {});
  expect_refused({}, {}, 2, {});
  expect_refused(Floats(6), Floats(5), 2, {});
  expect_refused(outputs(), targets(), kLossRows, short_gradient);
}

TEST_P(EveryLoss, IsClonedWithItsOptions) {
  const std::unique_ptr<Loss> clone = loss().clone();

  EXPECT_EQ(clone->name(), loss().name());
  EXPECT_EQ(clone->configuration(), loss().configuration());
  EXPECT_EQ(clone->evaluate(outputs(), targets(), kLossRows, 1, {}),
            loss().evaluate(outputs(), targets(), kLossRows, 1, {}));
}

template <typename Kind>
std::shared_ptr<const Loss> with_logits(bool from_logits) {
  return std::make_shared<Kind>(CrossentropyOptions{.from_logits = from_logits});
}

using enum LossCase::Outputs;

INSTANTIATE_TEST_SUITE_P(
    , EveryLoss,
    testing::Values(LossCase{"SparseLogits", with_logits<SparseCategoricalCrossentropy>(true),
                             sparse_reference(log_softmax), scores, LossCase::Targets::class_index},
                    LossCase{"SparseProbabilities", with_logits<SparseCategoricalCrossentropy>(false),
                             sparse_reference(log_share), probabilities, LossCase::Targets::class_index},
                    LossCase{"SmoothedLogits",
                             std::make_shared<SparseCategoricalCrossentropy>(CrossentropyOptions{
                                 .from_logits = true, .label_smoothing = kSmoothing}),
                             smoothed_reference, scores, LossCase::Targets::class_index},
                    LossCase{"CategoricalLogits", with_logits<CategoricalCrossentropy>(true),
                             categorical_reference(log_softmax), scores, LossCase::Targets::distribution},
                    LossCase{"CategoricalProbabilities", with_logits<CategoricalCrossentropy>(false),
                             categorical_reference(log_share), probabilities, LossCase::Targets::distribution},
                    LossCase{"BinaryLogits", with_logits<BinaryCrossentropy>(true),
                             elementwise_reference(binary_logit_loss), scores, LossCase::Targets::probabilities},
                    LossCase{"BinaryProbabilities", with_logits<BinaryCrossentropy>(false),
                             elementwise_reference(binary_loss), probabilities, LossCase::Targets::probabilities},
                    LossCase{"SquaredError", std::make_shared<MeanSquaredError>(), elementwise_reference(squared_loss),
                             scores, LossCase::Targets::probabilities}),
    [](const testing::TestParamInfo<LossCase>& param_info) { return param_info.param.name; });

// The examples on keras.io/api/losses, which give the mean over the samples to three digits.
constexpr double kThreeDigits = 0.0005;

TEST(SparseCategoricalCrossentropy, AgreesWithTheExampleOfKeras) {
  const Floats outputs = {0.05F, 0.95F, 0, 0.1F, 0.8F, 0.1F};

  EXPECT_NEAR(SparseCategoricalCrossentropy{}.evaluate(outputs, Floats{1, 2}, 2, 1, {}) / 2, 1.177, kThreeDigits);
}

TEST(CategoricalCrossentropy, AgreesWithTheExampleOfKeras) {
  const Floats outputs = {0.05F, 0.95F, 0, 0.1F, 0.8F, 0.1F};
  const Floats targets = {0, 1, 0, 0, 0, 1};

  EXPECT_NEAR(CategoricalCrossentropy{}.evaluate(outputs, targets, 2, 1, {}) / 2, 1.177, kThreeDigits);
}

TEST(BinaryCrossentropy, AgreesWithTheExamplesOfKeras) {
  const Floats scores = {-18.6F, 0.51F, 2.94F, -12.8F};
  const Floats probabilities = {0.6F, 0.4F, 0.4F, 0.6F};

  EXPECT_NEAR(BinaryCrossentropy{{.from_logits = true}}.evaluate(scores, Floats{0, 1, 0, 0}, 2, 1, {}) / 2, 0.865,
              kThreeDigits);
  EXPECT_NEAR(BinaryCrossentropy{}.evaluate(probabilities, Floats{0, 1, 0, 0}, 2, 1, {}) / 2, 0.815, kThreeDigits);
}

TEST(SparseCategoricalCrossentropy, StaysFiniteForHugeScores) {
  Floats gradient(3);

  const float loss = SparseCategoricalCrossentropy{{.from_logits = true}}.evaluate(Floats{3e38F, -3e38F, 0}, Floats{0},
                                                                                   1, 1, gradient);
  const float wrong =
      SparseCategoricalCrossentropy{{.from_logits = true}}.evaluate(Floats{1000, 0, 0}, Floats{1}, 1, 1, {});

  EXPECT_EQ(loss, 0.0F);
  EXPECT_THAT(gradient, Each(0.0F));
  EXPECT_EQ(wrong, 1000.0F);
}

TEST(SparseCategoricalCrossentropy, IgnoresAMaskedClass) {
  Floats gradient(3);

  const float loss = SparseCategoricalCrossentropy{{.from_logits = true}}.evaluate(Floats{0, -kInfinity, 0}, Floats{0},
                                                                                   1, 1, gradient);

  EXPECT_FLOAT_EQ(loss, std::log(2.0F));
  EXPECT_EQ(gradient[1], 0.0F);
}

TEST(CategoricalCrossentropy, IgnoresAMaskedClass) {
  Floats gradient(3);

  const float loss = CategoricalCrossentropy{{.from_logits = true}}.evaluate(Floats{0, -kInfinity, 0}, Floats{1, 0, 0},
                                                                             1, 1, gradient);

  EXPECT_FLOAT_EQ(loss, std::log(2.0F));
  EXPECT_EQ(gradient[1], 0.0F);
}

TEST(SparseCategoricalCrossentropy, ClipsProbabilitiesAsKerasDoes) {
  Floats gradient(2);

  const float loss = SparseCategoricalCrossentropy{}.evaluate(Floats{1, 0}, Floats{1}, 1, 1, gradient);

  EXPECT_FLOAT_EQ(loss, -std::log(1e-7F));
  EXPECT_THAT(gradient, Each(0.0F));
}

TEST(BinaryCrossentropy, ClipsProbabilitiesAsKerasDoes) {
  Floats gradient(2);

  const float loss = BinaryCrossentropy{}.evaluate(Floats{0, 1}, Floats{1, 0}, 1, 1, gradient);

  // 1 - 1e-7 in float is 1 - 2^-23.
  EXPECT_FLOAT_EQ(loss, (-std::log(1e-7F) - std::log(0x1p-23F)) / 2);
  EXPECT_THAT(gradient, Each(0.0F));
}

// With a target of 2 the loss has no least value: training would lower it without end and without a message.
TEST(BinaryCrossentropy, RefusesTargetsThatAreNotProbabilities) {
  const Floats outputs = {0.5F, 0.5F, 0.5F, 0.5F};
  for (const float wrong : {2.0F, -1.0F, std::nextafter(1.0F, 2.0F), std::numeric_limits<float>::quiet_NaN()}) {
    for (const BinaryCrossentropy& loss : {BinaryCrossentropy(), BinaryCrossentropy({.from_logits = true}),
                                           BinaryCrossentropy({.label_smoothing = 0.1F})}) {
      try {
        loss.evaluate(outputs, Floats{0, 1, 1, wrong}, 2, 1, {});
        ADD_FAILURE() << wrong << " was taken";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("sample 1 of 2 has the target "), HasSubstr("numbers from 0 to 1")));
      }
    }
  }
  EXPECT_NO_THROW(BinaryCrossentropy().evaluate(outputs, Floats{0, 1, 0.25F, 1}, 2, 1, {}));
}

TEST(BinaryCrossentropy, StaysFiniteForHugeScores) {
  Floats gradient(2);

  const float loss =
      BinaryCrossentropy{{.from_logits = true}}.evaluate(Floats{3e38F, -3e38F}, Floats{1, 0}, 1, 1, gradient);

  EXPECT_EQ(loss, 0.0F);
  EXPECT_THAT(gradient, Each(0.0F));
}

TEST(MeanSquaredError, HasAnExactSmallExample) {
  Floats gradient(4);

  const float sum = MeanSquaredError{}.evaluate(Floats{1, 1, 3, 0}, Floats{0, 1, 0, 0}, 2, 0.5F, gradient);

  EXPECT_EQ(sum, 5.0F);
  EXPECT_EQ(gradient, (Floats{0.5F, 0, 1.5F, 0}));
}

class ClassLabel : public testing::TestWithParam<float> {};

TEST_P(ClassLabel, ThatNoClassHasIsRefusedByName) {
  for (const bool from_logits : {false, true}) {
    try {
      SparseCategoricalCrossentropy{{.from_logits = from_logits}}.evaluate(Floats(9, 0.1F), Floats{0, GetParam(), 2}, 3,
                                                                           1, {});
      FAIL() << "took the label " << GetParam();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("sample 1 of 3 has the class label {}; ", GetParam())));
      EXPECT_THAT(error.what(), HasSubstr("3 classes"));
    }
  }
}

TEST(ClassLabelOfOneClass, IsAlwaysZero) {
  try {
    SparseCategoricalCrossentropy{{.from_logits = true}}.evaluate(Floats(1, 0.1F), Floats{1}, 1, 1, {});
    FAIL() << "took the label 1";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has the class label 1; the model has 1 class, so all labels are 0"));
  }
}

INSTANTIATE_TEST_SUITE_P(, ClassLabel,
                         testing::Values(-1.0F, 3.0F, 0.5F, 1e30F, kInfinity, -kInfinity,
                                         std::numeric_limits<float>::quiet_NaN()));

TEST(Crossentropy, TakesClassesAlongTheLastAxisAndPositionsBeforeIt) {
  EXPECT_EQ(SparseCategoricalCrossentropy{}.target_shape(Shape{10}), Shape{});
  EXPECT_EQ(SparseCategoricalCrossentropy{}.target_shape(Shape{4, 5, 10}), (Shape{4, 5}));
  EXPECT_EQ(CategoricalCrossentropy{}.target_shape(Shape{4, 10}), (Shape{4, 10}));
  EXPECT_EQ(SparseCategoricalCrossentropy{}.position_axes(Shape{4, 5, 10}), 2U);
  EXPECT_EQ(CategoricalCrossentropy{}.position_axes(Shape{10}), 0U);
  for (const Shape& shape : {Shape{}, Shape{0}}) {
    EXPECT_THROW(SparseCategoricalCrossentropy{}.target_shape(shape), Error) << shape.to_string();
    EXPECT_THROW(CategoricalCrossentropy{}.target_shape(shape), Error) << shape.to_string();
  }
}

TEST(Loss, TakesTargetsOfTheShapeOfItsOutputsIfItIsOfElements) {
  EXPECT_EQ(CategoricalCrossentropy{}.target_shape(Shape{10}), Shape{10});
  EXPECT_EQ(BinaryCrossentropy{}.target_shape(Shape{4, 2}), (Shape{4, 2}));
  EXPECT_EQ(MeanSquaredError{}.target_shape(Shape{}), Shape{});
}

TEST(Loss, DescribesItsOptionsAsJson) {
  EXPECT_EQ(SparseCategoricalCrossentropy{{.from_logits = true}}.configuration(),
            R"({"kind":"sparse_categorical_crossentropy","from_logits":true})");
  EXPECT_EQ(CategoricalCrossentropy{}.configuration(), R"({"kind":"categorical_crossentropy","from_logits":false})");
  EXPECT_EQ(BinaryCrossentropy{}.configuration(), R"({"kind":"binary_crossentropy","from_logits":false})");
  EXPECT_EQ(MeanSquaredError{}.configuration(), R"({"kind":"mean_squared_error"})");
}

}  // namespace
}  // namespace holdfast
