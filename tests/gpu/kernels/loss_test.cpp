// Losses on a device within derived tolerances of the host's, and labels that do not exist.

#include "holdfast/nn/loss.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include "gpu/support/gpu_test.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "holdfast/nn/binary_crossentropy.h"
#include "holdfast/nn/categorical_crossentropy.h"
#include "holdfast/nn/mean_squared_error.h"
#include "holdfast/nn/sparse_categorical_crossentropy.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;

constexpr float kScale = 0.25F;

struct Evaluation {
  float sum = 0;
  Values gradient;
};

struct LossCase {
  std::string name;
  std::shared_ptr<const Loss> loss;
  enum class Outputs { scores, probabilities } outputs = Outputs::scores;
  enum class Targets { labels, shares } targets = Targets::shares;
};

void PrintTo(const LossCase& test_case, std::ostream* stream) {
  *stream << test_case.name;
}

struct LossBatchSize {
  std::int64_t samples;
  std::int64_t outputs;
};

void PrintTo(const LossBatchSize& size, std::ostream* stream) {
  *stream << size.samples << "x" << size.outputs;
}

// Rows for a warp and for a block; one row, and more rows than the largest grid has blocks; multiples of the block's
// size and others.
const std::vector<LossBatchSize> kLossSizes = {{1, 1},    {1, 2},     {3, 10},   {128, 10},  {2048, 10},  {257, 33},
                                               {5, 1000}, {64, 1024}, {7, 1025}, {3, 50257}, {10000, 37}, {1100, 1031}};

class DeviceLossTest : public GpuTest {
 protected:
  Evaluation evaluate_on_device(const Loss& loss, const Values& outputs, const Values& targets, std::int64_t samples) {
    const DeviceArray device_outputs = upload(outputs);
    const DeviceArray device_targets = upload(targets);
    const DeviceArray gradient = upload(Values(outputs.size(), 99));
    const DeviceArray sum = upload(Values(1, 99));
    kernels().loss(shape_of(loss, samples, outputs.size()), {device_outputs.data(), device_targets.data()}, kScale,
                   gradient.data(), sum.data());
    return {.sum = sum.values()[0], .gradient = gradient.values()};
  }

  // With a weight for each `rows_each` rows.
  Evaluation evaluate_weighted_on_device(const Loss& loss, const Values& outputs, const Values& targets,
                                         std::int64_t rows, const Values& weights) {
    const DeviceArray device_outputs = upload(outputs);
    const DeviceArray device_targets = upload(targets);
    const DeviceArray device_weights = upload(weights);
    const DeviceArray gradient = upload(Values(outputs.size(), 99));
    const DeviceArray sum = upload(Values(1, 99));
    compute::LossShape shape = shape_of(loss, rows, outputs.size());
    shape.rows_each = rows / static_cast<std::int64_t>(weights.size());
    kernels().loss(shape, {device_outputs.data(), device_targets.data(), device_weights.data()}, kScale,
                   gradient.data(), sum.data());
    return {.sum = sum.values()[0], .gradient = gradient.values()};
  }

  float sum_on_device(const Loss& loss, const Values& outputs, const Values& targets, std::int64_t samples) {
    const DeviceArray device_outputs = upload(outputs);
    const DeviceArray device_targets = upload(targets);
    const DeviceArray sum = upload(Values(1, 99));
    kernels().loss(shape_of(loss, samples, outputs.size()), {device_outputs.data(), device_targets.data()}, kScale,
                   nullptr, sum.data());
    return sum.values()[0];
  }

  // The error of check(); empty if it finds nothing.
  std::string complaint() {
    try {
      kernels().check();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  }

 private:
  static compute::LossShape shape_of(const Loss& loss, std::int64_t rows, std::size_t elements) {
    compute::LossShape shape;
    EXPECT_TRUE(loss.describe_kernel(shape));
    shape.rows = rows;
    shape.outputs = static_cast<std::int64_t>(elements) / rows;
    return shape;
  }
};

class EveryDeviceLoss : public DeviceLossTest, public testing::WithParamInterface<std::tuple<LossCase, LossBatchSize>> {
 protected:
  const Loss& loss() const { return *std::get<0>(GetParam()).loss; }
  LossBatchSize size() const { return std::get<1>(GetParam()); }

  Values outputs() const {
    Values values = random_values(1, static_cast<std::size_t>(size().samples * size().outputs));
    const bool are_scores = std::get<0>(GetParam()).outputs == LossCase::Outputs::scores;
    for (float& value : values) value = are_scores ? 5 * value : 0.5F + 0.4F * value;
    return values;
  }

  Values targets() const {
    const bool are_labels = std::get<0>(GetParam()).targets == LossCase::Targets::labels;
    Random random(2, Purpose::user, 0, 0);
    Values values(static_cast<std::size_t>(are_labels ? size().samples : size().samples * size().outputs));
    for (float& value : values) {
      value =
          are_labels ? static_cast<float>(random.below(static_cast<std::uint64_t>(size().outputs))) : random.uniform();
    }
    return values;
  }

  Evaluation on_host() const {
    Evaluation result{.gradient = Values(outputs().size())};
    result.sum = loss().evaluate(outputs(), targets(), size().samples, kScale, result.gradient);
    return result;
  }

  Evaluation on_device() { return evaluate_on_device(loss(), outputs(), targets(), size().samples); }
};

// The device's exponential in float has an error of at most 2 units in the last place, the host's of less than 1. So
// the logarithm of their sums differs by up to 3 * 2^-23, weighted by the targets, which are up to 1 for each class.
// Each side rounds its sum to float once.
TEST_P(EveryDeviceLoss, SumsWhatTheHostSums) {
  const Evaluation expected = on_host();
  const Evaluation actual = on_device();

  const double weight = std::get<0>(GetParam()).targets == LossCase::Targets::labels
                            ? static_cast<double>(size().samples)
                            : static_cast<double>(size().samples * size().outputs);
  EXPECT_NEAR(actual.sum, expected.sum, weight * 0x1p-21 + 0x1p-22 * std::abs(expected.sum));
}

// 3 units for the exponential and 1 each for sum, factor, product and difference, so 8 units of the larger term. A term
// is at most the scale plus the gradient.
TEST_P(EveryDeviceLoss, HasTheGradientOfTheHost) {
  const Evaluation expected = on_host();
  const Evaluation actual = on_device();

  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
    const double tolerance = 0x1p-20 * (kScale + std::abs(expected.gradient[i]));
    if (std::abs(actual.gradient[i] - expected.gradient[i]) <= tolerance) continue;
    if (wrong++ > 0) continue;
    EXPECT_NEAR(actual.gradient[i], expected.gradient[i], tolerance) << "the first, element " << i;
  }
  EXPECT_EQ(wrong, 0U) << "of " << expected.gradient.size();
}

TEST_P(EveryDeviceLoss, GivesTheSameBitsAgain) {
  const Evaluation first = on_device();
  const Evaluation second = on_device();

  EXPECT_EQ(first.sum, second.sum);
  EXPECT_EQ(bit_differences(first.gradient, second.gradient), "");
}

TEST_P(EveryDeviceLoss, SumsTheSameWithoutAGradient) {
  EXPECT_EQ(sum_on_device(loss(), outputs(), targets(), size().samples), on_device().sum);
}

const std::vector<LossCase> kLosses = {
    {"sparse_logits", std::make_shared<SparseCategoricalCrossentropy>(CrossentropyOptions{.from_logits = true}),
     LossCase::Outputs::scores, LossCase::Targets::labels},
    {"sparse", std::make_shared<SparseCategoricalCrossentropy>(), LossCase::Outputs::probabilities,
     LossCase::Targets::labels},
    {"categorical_logits", std::make_shared<CategoricalCrossentropy>(CrossentropyOptions{.from_logits = true}),
     LossCase::Outputs::scores, LossCase::Targets::shares},
    {"categorical", std::make_shared<CategoricalCrossentropy>(), LossCase::Outputs::probabilities,
     LossCase::Targets::shares},
    {"binary_logits", std::make_shared<BinaryCrossentropy>(CrossentropyOptions{.from_logits = true}),
     LossCase::Outputs::scores, LossCase::Targets::shares},
    {"binary", std::make_shared<BinaryCrossentropy>(), LossCase::Outputs::probabilities, LossCase::Targets::shares},
    {"mean_squared_error", std::make_shared<MeanSquaredError>(), LossCase::Outputs::scores, LossCase::Targets::shares}};

INSTANTIATE_TEST_SUITE_P(Losses, EveryDeviceLoss,
                         testing::Combine(testing::ValuesIn(kLosses), testing::ValuesIn(kLossSizes)),
                         [](const auto& test) {
                           const LossBatchSize size = std::get<1>(test.param);
                           return fmt::format("{}_{}_{}", std::get<0>(test.param).name, size.samples, size.outputs);
                         });

// Weights are powers of two, so a gradient is that without weights times the weight, to the bit.
TEST_F(DeviceLossTest, TakesAWeightForEachRowAndDoesNotLookAtMaskedOnes) {
  constexpr std::size_t kRows = 6, kOutputs = 10;
  const Values weights = {1, 0, 2, 0.5F, 0, 4};
  for (const LossCase& test_case : kLosses) {
    SCOPED_TRACE(test_case.name);
    const bool has_labels = test_case.targets == LossCase::Targets::labels;
    Values outputs = random_values(1, kRows * kOutputs);
    for (float& value : outputs) value = 0.5F + 0.4F * value;
    const Values targets(has_labels ? kRows : kRows * kOutputs, has_labels ? 3.0F : 0.25F);
    const Evaluation plain = evaluate_on_device(*test_case.loss, outputs, targets, kRows);
    double expected_sum = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::size_t width = targets.size() / kRows;
      const Values one(outputs.begin() + row * kOutputs, outputs.begin() + (row + 1) * kOutputs);
      const Values target(targets.begin() + row * width, targets.begin() + (row + 1) * width);
      expected_sum += weights[row] * static_cast<double>(sum_on_device(*test_case.loss, one, target, 1));
      if (weights[row] == 0) outputs[row * kOutputs + 2] = std::numeric_limits<float>::quiet_NaN();
    }

    const Evaluation actual = evaluate_weighted_on_device(*test_case.loss, outputs, targets, kRows, weights);

    EXPECT_NEAR(actual.sum, expected_sum, 0x1p-20 * std::abs(expected_sum));
    Values expected_gradient = plain.gradient;
    for (std::size_t i = 0; i < expected_gradient.size(); ++i) expected_gradient[i] *= weights[i / kOutputs];
    for (std::size_t i = 0; i < expected_gradient.size(); ++i) {
      EXPECT_EQ(actual.gradient[i], expected_gradient[i]) << "element " << i;
    }
  }
}

// A mean over two rows has half of the gradient, which is exact.
TEST_F(DeviceLossTest, CountsRowsThatShareAWeightByTheirMean) {
  for (const LossCase& test_case : kLosses) {
    SCOPED_TRACE(test_case.name);
    const bool has_labels = test_case.targets == LossCase::Targets::labels;
    Values outputs = random_values(1, 60);
    for (float& value : outputs) value = 0.5F + 0.4F * value;
    const Values targets(has_labels ? 6 : 60, has_labels ? 3.0F : 0.25F);
    const Evaluation plain = evaluate_on_device(*test_case.loss, outputs, targets, 6);

    const Evaluation actual = evaluate_weighted_on_device(*test_case.loss, outputs, targets, 6, {1, 1, 1});

    EXPECT_NEAR(actual.sum, plain.sum / 2, 0x1p-22 * std::abs(plain.sum));
    for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(actual.gradient[i], plain.gradient[i] / 2) << i;
  }
}

// The loss has only sums and differences of floats, so host and device round alike.
TEST_F(DeviceLossTest, MeanSquaredErrorHasTheHostsGradientToTheBit) {
  const MeanSquaredError loss;
  const Values outputs = random_values(1, 3000);
  const Values targets = random_values(2, 3000);
  Values expected(outputs.size());
  loss.evaluate(outputs, targets, 1000, kScale, expected);

  EXPECT_EQ(bit_differences(expected, evaluate_on_device(loss, outputs, targets, 1000).gradient), "");
}

TEST_F(DeviceLossTest, AMaskedClassAddsNothing) {
  const CategoricalCrossentropy loss({.from_logits = true});
  const Values outputs = {1, -std::numeric_limits<float>::infinity(), 2};
  const Values targets = {0.25F, 0, 0.75F};
  Values gradient(3);
  const float expected = loss.evaluate(outputs, targets, 1, kScale, gradient);

  const Evaluation actual = evaluate_on_device(loss, outputs, targets, 1);

  EXPECT_NEAR(actual.sum, expected, 0x1p-20);
  EXPECT_EQ(actual.gradient[1], 0.0F);
}

class DeviceLabels : public DeviceLossTest {
 protected:
  static constexpr std::int64_t kSamples = 70;
  static constexpr std::int64_t kClasses = 10;

  // All labels are 3, except for the given ones.
  Evaluation evaluate(const std::vector<std::pair<std::size_t, float>>& wrong) {
    Values labels(kSamples, 3);
    for (const auto& [sample, label] : wrong) labels[sample] = label;
    return evaluate_on_device(SparseCategoricalCrossentropy({.from_logits = true}),
                              random_values(1, kSamples * kClasses), labels, kSamples);
  }
};

TEST_F(DeviceLabels, AreFineFromZeroToTheLastClass) {
  evaluate({{0, 0.0F}, {1, 9.0F}});

  EXPECT_EQ(complaint(), "");
}

TEST_F(DeviceLabels, ThatNameNoClassAreReportedOnce) {
  for (const float label : {10.0F, -1.0F, 0.5F, 1e30F, std::numeric_limits<float>::infinity()}) {
    evaluate({{33, label}});

    EXPECT_THAT(complaint(), testing::HasSubstr("sample 33")) << label;
    EXPECT_EQ(complaint(), "") << label;
  }
  evaluate({{5, std::numeric_limits<float>::quiet_NaN()}});
  EXPECT_THAT(complaint(), testing::HasSubstr("sample 5 "));
}

TEST_F(DeviceLabels, AreReportedByTheFirstSample) {
  evaluate({{69, 11.0F}, {41, 12.0F}, {50, 13.0F}});
  evaluate({{60, 14.0F}});

  const std::string text = complaint();

  EXPECT_THAT(text, testing::HasSubstr("sample 41"));
  EXPECT_THAT(text, testing::HasSubstr("12"));
  EXPECT_THAT(text, testing::HasSubstr("10 classes"));
}

// A loss may be computed some rows at a time.
TEST_F(DeviceLabels, AreCountedFromTheFirstRow) {
  const DeviceArray outputs = upload(random_values(1, 4 * kClasses));
  const DeviceArray labels = upload(Values{3, 3, 11, 3});
  const DeviceArray sum = upload(Values(1, 99));
  compute::LossShape shape;
  ASSERT_TRUE(SparseCategoricalCrossentropy({.from_logits = true}).describe_kernel(shape));
  shape.rows = 4;
  shape.outputs = kClasses;
  shape.first_row = 60;
  kernels().loss(shape, {outputs.data(), labels.data()}, kScale, nullptr, sum.data());

  EXPECT_THAT(complaint(), testing::HasSubstr("sample 62 of 64"));
}

TEST_F(DeviceLabels, AreReportedByTheirRowIfTheyAreNotProbabilities) {
  for (const bool from_logits : {true, false}) {
    for (const float wrong : {2.0F, -0.5F, std::numeric_limits<float>::quiet_NaN()}) {
      Values targets(kSamples * kClasses, 0.25F);
      targets[33 * kClasses + 4] = wrong;
      targets[50 * kClasses] = 7;
      const Evaluation result = evaluate_on_device(BinaryCrossentropy({.from_logits = from_logits}),
                                                   Values(kSamples * kClasses, 0.5F), targets, kSamples);

      EXPECT_TRUE(std::isnan(result.sum));
      const std::string text = complaint();
      EXPECT_THAT(text, testing::HasSubstr("sample 33 of 70 has the target"));
      EXPECT_THAT(text, testing::HasSubstr("from 0 to 1"));
      EXPECT_EQ(complaint(), "");
    }
  }
}

// Each output of a model has its own number of classes.
TEST_F(DeviceLabels, AreDescribedByTheLossThatMetThem) {
  evaluate_on_device(SparseCategoricalCrossentropy({.from_logits = true}), random_values(1, 6 * 3),
                     Values{0, 1, 2, 0, 3, 1}, 6);
  evaluate({});

  EXPECT_THAT(complaint(), testing::HasSubstr("sample 4 of 6 has the class label 3; the model has 3 classes"));
}

TEST_F(DeviceLabels, ThatAreWrongSpoilNoOtherSample) {
  const Evaluation right = evaluate({});
  Evaluation wrong = evaluate({{7, 1000000.0F}});

  EXPECT_TRUE(std::isnan(wrong.sum));
  const auto row = wrong.gradient.begin() + 7 * kClasses;
  EXPECT_THAT(Values(row, row + kClasses), testing::Each(0.0F));
  std::copy_n(right.gradient.begin() + 7 * kClasses, kClasses, row);
  EXPECT_EQ(bit_differences(right.gradient, wrong.gradient), "");
  EXPECT_NE(complaint(), "");
}

}  // namespace
}  // namespace holdfast
