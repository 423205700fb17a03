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

// What the device computes, one element after the other.
struct Pooled {
  Pooled(const PoolingShape& shape, const Floats& input, const Floats& output_gradient) {
    const PoolingPlan plan(shape);
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < plan.output_elements(); ++i) {
      if (shape.kind == PoolingKind::average) {
        output.push_back(average_of_window(plan, input.data(), i));
      } else {
        const Maximum maximum = maximum_of_window(plan, input.data(), i);
        output.push_back(maximum.value);
        positions.push_back(maximum.position);
      }
    }
    for (std::int64_t i = 0; i < plan.input_elements(); ++i) {
      input_gradient.push_back(shape.kind == PoolingKind::average
                                   ? gradient_of_average(plan, output_gradient.data(), i)
                                   : gradient_of_maximum(plan, output_gradient.data(), positions.data(), i));
    }
  }

  Floats output;
  Floats input_gradient;
};

class Poolings : public testing::TestWithParam<PoolingCase> {};

TEST_P(Poolings, AreThoseOfTheHost) {
  PoolingShape shape = GetParam().shape;
  for (const PoolingKind kind : {PoolingKind::maximum, PoolingKind::average}) {
    shape.kind = kind;
    const PoolingPlan plan(shape);
    // Whole numbers up to 3: ties are frequent, and sums exact in any order.
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
  const PoolingPlan plan({.samples = 1, .height = 1, .width = 4, .channels = 1, .pool_height = 1, .pool_width = 4});
  const float nothing = std::numeric_limits<float>::quiet_NaN();

  const Maximum found = maximum_of_window(plan, Floats{1, nothing, 3, nothing}.data(), 0);

  EXPECT_TRUE(std::isnan(found.value));
  EXPECT_EQ(found.position, 1);
}

}  // namespace
}  // namespace holdfast::compute
