#include "holdfast/nn/batch_normalization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "holdfast/base/error.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/recompute.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

Values normalized(const Values& x, std::int64_t channels, const Values& gamma, const Values& beta) {
  return reference::batch_normalization(x, reference::statistics(x, channels), gamma, beta, 1e-3);
}

// Normalisation divides by a standard deviation, of values drawn from [-1, 1) and their sums: above 0.2 in these tests.
// Each sum over rows is divided by their number again, so that mean and variance add some paths of size 1 / 0.2 each.
constexpr double kLargestFactor = 1 / 0.2;

TEST(BatchNormalization, OutputsAndGradientsOfImagesAreThoseOfTheReference) {
  for (const std::int64_t channels : {3, 8, 16}) {
    const Sequential model{Input{4, 3, 2}, Conv2D{channels, 1}, BatchNormalization{}};
    const auto reference = [&](const Values& x, const std::vector<Values>& p) {
      const Values before = reference::convolution(x, {3, 4, 3, 2}, p[0], p[1], channels, {});
      return normalized(before, channels, p[2], p[3]);
    };

    // 36 rows meet in a gradient, each by three paths (itself, mean, variance) of factors 1, 1 and the squared
    // deviation over the variance, at most 3^2.
    reference::expect_training_matches(model, 3, reference,
                                       {.paths = 36 * 11, .roundings = 36 + 36 + 16, .largest_path = kLargestFactor});
  }
}

TEST(BatchNormalization, OutputsAndGradientsOfVectorsAreThoseOfTheReference) {
  const Sequential model{Input{3}, BatchNormalization{}, Dense{5}, BatchNormalization{}, Dense{2}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    const Values hidden = reference::dense(normalized(x, 3, p[0], p[1]), 3, p[2], p[3], 5);
    return reference::dense(normalized(hidden, 5, p[4], p[5]), 5, p[6], p[7], 2);
  };

  // 7 rows by 11 paths as above, through the next layer's 2 outputs, then twice so for the first normalisation.
  reference::expect_training_matches(
      model, 7, reference,
      {.paths = 7 * 11 * 11 * 2, .roundings = 4 * 7 + 32, .largest_path = kLargestFactor * kLargestFactor});
}

struct Program {
  explicit Program(const Model& model)
      : program(model, 1),
        parameters(model.parameters().float_count()),
        buffers(model.buffers().float_count()),
        gradients(parameters.size()),
        contributions(program.contribution_count()) {
    model.initialize(1, parameters, buffers);
  }

  void step(const std::vector<float>& features, std::int64_t samples) {
    const auto outputs = program.forward_training(features, samples, parameters, {});
    program.backward(std::vector<float>(outputs.size(), 1.0F), parameters, gradients, contributions);
  }

  ModelProgram program;
  std::vector<float> parameters, buffers, gradients, contributions;
};

TEST(BatchNormalization, ContributesItsStatisticsTimesRows) {
  const Sequential model{Input{2, 1, 2}, BatchNormalization{}};
  Program program(model);

  // Two samples of two positions: channel 0 is 1, 3, 5, 7 and channel 1 always -2.
  program.step({1, -2, 3, -2, 5, -2, 7, -2}, 2);

  // Small integers and powers of two: exact.
  EXPECT_EQ(program.contributions, (std::vector<float>{4 * 4, 4 * -2, 4 * 5, 0, 4}));
}

TEST(BatchNormalization, UpdatesItsBuffersFromTheContributionsOfAllShards) {
  const Sequential model{Input{2}, BatchNormalization{{.momentum = 0.75F}}, BatchNormalization{{.momentum = 0.5F}}};
  Program program(model);
  // Each layer has sums of the means and of the variances of two channels, and the count.
  const std::vector<float> contributions = {8, -16, 24, 4, 8, 10, 20, 30, 40, 10};

  program.program.update_buffers(contributions, program.buffers);

  // Moving means begin at 0 and variances at 1; the numbers are multiples of small powers of two, so that all is exact.
  const auto view = [&](std::size_t entry) {
    const auto values = model.buffers().view(std::span<const float>(program.buffers), entry);
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(view(0), (std::vector<float>{0.25F * 1, 0.25F * -2}));
  EXPECT_EQ(view(1), (std::vector<float>{0.75F + 0.25F * 3, 0.75F + 0.25F * 0.5F}));
  EXPECT_EQ(view(2), (std::vector<float>{0.5F * 1, 0.5F * 2}));
  EXPECT_EQ(view(3), (std::vector<float>{0.5F + 0.5F * 3, 0.5F + 0.5F * 4}));
}

TEST(BatchNormalization, AnEmptyShardContributesNothing) {
  const Sequential model{Input{2}, BatchNormalization{}};
  Program program(model);
  program.step({1, 2, 3, 4}, 2);

  program.step({}, 0);

  EXPECT_EQ(program.contributions, std::vector<float>(5, 0.0F));
  EXPECT_EQ(program.gradients, std::vector<float>(program.gradients.size(), 0.0F));
}

TEST(BatchNormalization, AnEmptyBatchLeavesTheBuffers) {
  const Sequential model{Input{2}, BatchNormalization{}};
  Program program(model);
  const std::vector<float> before = program.buffers;

  program.program.update_buffers(std::vector<float>(5, 0.0F), program.buffers);

  EXPECT_EQ(program.buffers, before);
}

TEST(BatchNormalization, OneSampleHasNoVariance) {
  const Sequential model{Input{2}, BatchNormalization{}};
  Program program(model);

  const auto outputs = program.program.forward_training(std::vector<float>{3, -4}, 1, program.parameters, {});

  // The deviation from the mean is exactly 0, and beta begins at 0.
  EXPECT_EQ(std::vector<float>(outputs.begin(), outputs.end()), (std::vector<float>{0, 0}));
}

TEST(BatchNormalization, InferenceTakesTheBuffers) {
  const Sequential model{Input{2, 2, 3}, BatchNormalization{}};
  const std::vector<float> features = reference::random_values(5 * 12, 1);
  std::vector<float> parameters = reference::random_values(model.parameters().float_count(), 2);
  std::vector<float> buffers = reference::random_values(model.buffers().float_count(), 3);
  const auto moving_variance = model.buffers().view(std::span<float>(buffers), 1);
  for (float& value : moving_variance) value = 0.5F + std::abs(value);
  ModelProgram program(model, 1);

  const auto outputs = program.forward_inference(features, 5, parameters, buffers);

  const auto parameter = [&](std::size_t i) {
    return reference::widened(model.parameters().view(std::span<const float>(parameters), i));
  };
  const auto buffer = [&](std::size_t i) {
    return reference::widened(model.buffers().view(std::span<const float>(buffers), i));
  };
  const Values expected = reference::batch_normalization(reference::widened(features), {buffer(0), buffer(1)},
                                                         parameter(0), parameter(1), 1e-3);
  ASSERT_EQ(outputs.size(), expected.size());
  // (x - mean) / deviation * gamma + beta: 8 roundings of values at most 2 / 0.7 + 1.
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(outputs[i], expected[i], 8 * 4 * 0x1p-24) << i;
}

const std::vector<BatchNormalizationOptions> kWithoutParameters = {
    {.has_scale = false}, {.has_center = false}, {.has_scale = false, .has_center = false}};

TEST(BatchNormalization, HasTheParametersThatItsOptionsAskFor) {
  const auto names = [](const BatchNormalizationOptions& options) {
    const Sequential model{Input{2, 3}, BatchNormalization{options}};
    std::vector<std::string> found;
    for (const ArenaEntry& entry : model.parameters().entries()) {
      EXPECT_EQ(entry.shape, Shape{3});
      found.push_back(entry.name);
    }
    EXPECT_EQ(model.buffers().entries().size(), 2U);
    return found;
  };
  EXPECT_EQ(names({.name = "n"}), (std::vector<std::string>{"n/gamma", "n/beta"}));
  EXPECT_EQ(names({.has_scale = false, .name = "n"}), std::vector<std::string>{"n/beta"});
  EXPECT_EQ(names({.has_center = false, .name = "n"}), std::vector<std::string>{"n/gamma"});
  EXPECT_EQ(names({.has_scale = false, .has_center = false, .name = "n"}), std::vector<std::string>{});
}

Model model_with(BatchNormalizationOptions options, bool is_recomputed) {
  options.name = "norm";
  const Value x = input({4, 3, 2});
  const auto block = [&] { return relu(BatchNormalization{options}(Conv2D{8, 1}(x))); };
  return Model(x, Dense{2}(Flatten{}(is_recomputed ? recompute(block) : block())));
}

// What a step and a prediction give.
struct StepNumbers {
  std::vector<float> outputs, contributions, predictions;
  std::map<std::string, std::vector<float>> gradients;
};

// Gamma and beta are 1 and 0, as they begin. All other weights are the same for all models.
StepNumbers numbers_of(const Model& model) {
  Program program(model);
  std::uint64_t number = 1;
  for (std::size_t i = 0; i < model.parameters().entries().size(); ++i) {
    if (model.parameters().entries()[i].name.starts_with("norm/")) continue;
    const std::span<float> weights = model.parameters().view(std::span<float>(program.parameters), i);
    std::ranges::copy(reference::random_values(weights.size(), number++), weights.begin());
  }
  const std::vector<float> features = reference::random_values(5 * 24, 20);
  const auto copied = [](std::span<const float> values) { return std::vector(values.begin(), values.end()); };
  StepNumbers numbers;
  numbers.outputs = copied(program.program.forward_training(features, 5, program.parameters, {}));
  program.program.backward(reference::random_values(numbers.outputs.size(), 21), program.parameters, program.gradients,
                           program.contributions);
  numbers.contributions = program.contributions;
  numbers.predictions = copied(program.program.forward_inference(features, 5, program.parameters, program.buffers));
  for (std::size_t i = 0; i < model.parameters().entries().size(); ++i) {
    numbers.gradients[model.parameters().entries()[i].name] =
        copied(model.parameters().view(std::span<const float>(program.gradients), i));
  }
  return numbers;
}

TEST(BatchNormalization, WithoutScaleOrCenterHasTheBitsOfAGammaOf1AndABetaOf0) {
  const StepNumbers expected = numbers_of(model_with({}, false));
  for (const BatchNormalizationOptions& options : kWithoutParameters) {
    for (const bool is_recomputed : {false, true}) {
      SCOPED_TRACE(::testing::Message() << options.has_scale << options.has_center << is_recomputed);
      const StepNumbers found = numbers_of(model_with(options, is_recomputed));

      EXPECT_EQ(found.outputs, expected.outputs);
      EXPECT_EQ(found.predictions, expected.predictions);
      EXPECT_EQ(found.contributions, expected.contributions);
      EXPECT_EQ(found.gradients.size(), 4U + (options.has_scale ? 1 : 0) + (options.has_center ? 1 : 0));
      for (const auto& [name, gradient] : found.gradients) EXPECT_EQ(gradient, expected.gradients.at(name)) << name;
    }
  }
}

TEST(BatchNormalization, WithoutParametersContributesItsStatistics) {
  const Sequential model{Input{2, 1, 2}, BatchNormalization{{.has_scale = false, .has_center = false}}};
  Program program(model);

  program.step({1, -2, 3, -2, 5, -2, 7, -2}, 2);

  EXPECT_EQ(program.contributions, (std::vector<float>{4 * 4, 4 * -2, 4 * 5, 0, 4}));
}

TEST(BatchNormalization, RefusesImpossibleOptions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW((BatchNormalization{{.momentum = -0.1F}}), Error);
  EXPECT_THROW((BatchNormalization{{.momentum = 1.1F}}), Error);
  EXPECT_THROW((BatchNormalization{{.momentum = nan}}), Error);
  EXPECT_THROW((BatchNormalization{{.epsilon = 0}}), Error);
  EXPECT_THROW((BatchNormalization{{.epsilon = nan}}), Error);
  EXPECT_THROW((BatchNormalization{{.epsilon = std::numeric_limits<float>::infinity()}}), Error);
}

}  // namespace
}  // namespace holdfast
