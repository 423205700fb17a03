#include "holdfast/nn/global_pooling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

// [samples, positions, channels] -> [samples, channels]
Values pooled(const Values& x, std::size_t positions, std::size_t channels, bool takes_mean) {
  Values y;
  for (std::size_t sample = 0; sample < x.size() / positions / channels; ++sample) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      double sum = 0, largest = -1e30;
      for (std::size_t position = 0; position < positions; ++position) {
        const double value = x[(sample * positions + position) * channels + channel];
        sum += value;
        largest = std::max(largest, value);
      }
      y.push_back(takes_mean ? sum / static_cast<double>(positions) : largest);
    }
  }
  return y;
}

TEST(GlobalPooling, MatchesTheReference) {
  for (const bool takes_mean : {true, false}) {
    const Conv2D convolution{3, 2};
    const Sequential model = takes_mean ? Sequential{Input{4, 5, 2}, convolution, GlobalAveragePooling{}}
                                        : Sequential{Input{4, 5, 2}, convolution, GlobalMaxPooling{}};
    const auto reference = [&](const Values& x, const std::vector<Values>& p) {
      return pooled(reference::convolution(x, {2, 4, 5, 2}, p[0], p[1], 3, {2, 2, 1, 1, false}), 12, 3, takes_mean);
    };

    EXPECT_EQ(model.output_shape(), (Shape{3}));
    // A weight reaches an output through 12 positions.
    reference::expect_training_matches(model, 2, reference, {.paths = 2 * 12, .roundings = 20, .largest_path = 2});
  }
}

TEST(GlobalPooling, KeepsItsAxesWhereAsked) {
  EXPECT_EQ((Sequential{Input{4, 5, 2}, GlobalAveragePooling{{.keeps_axes = true}}}.output_shape()), (Shape{1, 1, 2}));
  EXPECT_EQ((Sequential{Input{4, 2}, GlobalMaxPooling{{.keeps_axes = true}}}.output_shape()), (Shape{1, 2}));
  EXPECT_THROW((Sequential{Input{4}, GlobalMaxPooling{}}), Error);
}

TEST(GlobalPooling, EqualLargestElementsShareTheGradient) {
  const Sequential model{Input{4, 1}, FunctionLayer([](const Value& x) { return largest(x, {0}); })};
  const std::vector<float> features = {1, 3, 3, 2};
  const std::vector<float> one = {1};
  std::vector<float> parameters(model.parameters().float_count()), gradients(parameters.size());
  ModelProgram program(model, 1);

  program.forward_training(features, 1, parameters, {});
  program.backward(one, parameters, gradients, {});

  EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.begin() + 4), (std::vector<float>{0, 0.5F, 0.5F, 0}));
}

}  // namespace
}  // namespace holdfast
