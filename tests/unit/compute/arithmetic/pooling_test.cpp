// The device's formulas of pooling, one element at a time, compared with the CPU back end.

#include "compute/arithmetic/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

struct PoolingCase {
  const char* name;
  PoolingShape shape;
};

// The computation of the device, one element after another.
struct Pooled {
  Pooled(const PoolingShape& shape, const Floats& input, const Floats& output_gradient) : plan(shape) {
    const bool is_average = shape.kind == PoolingKind::average;
    for (std::int64_t i = 0; i < plan.output_elements(); ++i) is_average ? average(input, i) : maximum(input, i);
    for (std::int64_t i = 0; i < plan.input_elements(); ++i) {
      input_gradient.push_back(gradient(output_gradient, i, is_average));
    }
  }

  void average(const Floats& input, std::int64_t index) {
    const ImageElement element = plan.output(index);
    float sum = 0;
    for_each_of_window(plan, element, [&](std::int32_t position) { sum += at(input, element, position); });
    output.push_back(sum / elements_of_window(plan, element.row, element.column));
  }

  void maximum(const Floats& input, std::int64_t index) {
    const ImageElement element = plan.output(index);
    Maximum found;
    for_each_of_window(plan, element,
                       [&](std::int32_t position) { found.take(at(input, element, position), position); });
    output.push_back(found.value);
    positions.push_back(found.position);
  }

  float gradient(const Floats& output_gradient, std::int64_t index, bool is_average) const {
    const ImageElement element = plan.input(index);
    const std::int32_t position = element.row * plan.columns.extent + element.column;
    float sum = 0;
    for_each_window_over(plan, element, [&](std::int32_t row, std::int32_t column) {
      const auto from = static_cast<std::size_t>(plan.begin_of_outputs(element) +
                                                 (row * plan.columns.count + column) * plan.channels);
      if (is_average) {
        sum += output_gradient[from] / elements_of_window(plan, row, column);
      } else if (positions[from] == position) {
        sum += output_gradient[from];
      }
    });
    return sum;
  }

  float at(const Floats& input, const ImageElement& element, std::int32_t position) const {
    return input[static_cast<std::size_t>(plan.begin_of_inputs(element) + position * plan.channels)];
  }

  const PoolingPlan plan;
  std::vector<std::int32_t> positions;
  Floats output;
  Floats input_gradient;
};

class Poolings : public testing::TestWithParam<PoolingCase> {};

TEST_P(Poolings, AreThoseOfTheHost) {
  PoolingShape shape = GetParam().shape;
  for (const PoolingKind kind : {PoolingKind::maximum, PoolingKind::average}) {
    shape.kind = kind;
    const PoolingPlan plan(shape);
    // Whole numbers up to 3, so that ties are frequent and sums are exact in any order.
    Floats input = random_values(plan.input_elements(), 1);
    for (float& value : input) value = std::round(3 * value);
    const Floats output_gradient = random_values(plan.output_elements(), 2);
    const auto backend = make_cpu_backend(1);
    const auto operation = backend->pooling(shape, {.training = true, .input_gradient = true});
    Floats output(output_gradient.size()), input_gradient(input.size());

    operation->forward(input.data(), output.data());
    operation->backward(output_gradient.data(), input_gradient.data());

    const Pooled pooled(shape, input, output_gradient);
    for (std::size_t i = 0; i < output.size(); ++i) EXPECT_FLOAT_EQ(pooled.output[i], output[i]) << i;
    // Sums of at most nine gradients below 1, each rounded.
    for (std::size_t i = 0; i < input.size(); ++i) EXPECT_NEAR(pooled.input_gradient[i], input_gradient[i], 1e-6F) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Poolings,
                         testing::Values(PoolingCase{"Halving",
                                                     {.samples = 2,
                                                      .height = 4,
                                                      .width = 6,
                                                      .channels = 3,
                                                      .pool_height = 2,
                                                      .pool_width = 2,
                                                      .stride_height = 2,
                                                      .stride_width = 2}},
                                         PoolingCase{"Overlapping",
                                                     {.samples = 2,
                                                      .height = 7,
                                                      .width = 5,
                                                      .channels = 2,
                                                      .pool_height = 3,
                                                      .pool_width = 3,
                                                      .stride_height = 2,
                                                      .stride_width = 1,
                                                      .padding = Padding::same}},
                                         PoolingCase{"LeavingARest",
                                                     {.samples = 1,
                                                      .height = 7,
                                                      .width = 8,
                                                      .channels = 1,
                                                      .pool_height = 2,
                                                      .pool_width = 3,
                                                      .stride_height = 2,
                                                      .stride_width = 3}},
                                         PoolingCase{"Padded",
                                                     {.samples = 3,
                                                      .height = 5,
                                                      .width = 5,
                                                      .channels = 4,
                                                      .pool_height = 4,
                                                      .pool_width = 4,
                                                      .stride_height = 1,
                                                      .stride_width = 1,
                                                      .padding = Padding::same}}),
                         [](const auto& instance) { return instance.param.name; });

TEST(Pooling, ShowsThatAnInputWasNotANumber) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  const Floats input = {1, nothing, 3, nothing};
  Maximum found;

  for (std::size_t i = 0; i < input.size(); ++i) found.take(input[i], static_cast<std::int32_t>(i));

  EXPECT_TRUE(std::isnan(found.value));
  EXPECT_EQ(found.position, 1);
}

}  // namespace
}  // namespace holdfast::compute
