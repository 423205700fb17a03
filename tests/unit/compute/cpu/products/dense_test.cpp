// Dense layers of the CPU back end at bf16: the factors of each product are rounded, and nothing else is.

#include <gtest/gtest.h>

#include <limits>

#include "compute/backend.h"
#include "support/cpu_bf16.h"
#include "unit/compute/arithmetic/support/values.h"
#include "unit/compute/cpu/support/bf16_numbers.h"

namespace holdfast::compute {
namespace {

struct DenseNumbers {
  explicit DenseNumbers(const DenseShape& shape, std::uint64_t seed = 0)
      : input(random_values(shape.rows * shape.inputs, seed + 1)),
        kernel(random_values(shape.inputs * shape.outputs, seed + 2)),
        bias(random_values(shape.outputs, seed + 3)),
        output_gradient(random_values(shape.rows * shape.outputs, seed + 4)) {}

  std::vector<float> input, kernel, bias, output_gradient;
};

struct DenseResults {
  bool operator==(const DenseResults&) const = default;

  std::vector<float> output, input_gradient, kernel_gradient, bias_gradient;
};

DenseResults dense_results_of(DenseOperation& operation, const DenseNumbers& numbers) {
  DenseResults results = {numbers.output_gradient, numbers.input, numbers.kernel, numbers.bias};
  operation.forward(numbers.input.data(), numbers.kernel.data(), numbers.bias.data(), results.output.data());
  operation.backward_weights(numbers.input.data(), numbers.output_gradient.data(), results.kernel_gradient.data(),
                             results.bias_gradient.data());
  operation.backward_input(numbers.kernel.data(), numbers.output_gradient.data(), results.input_gradient.data());
  return results;
}

class DenseInBf16 : public testing::TestWithParam<DenseShape> {
 protected:
  void SetUp() override {
    if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
    backend_ = make_cpu_backend(1, Precision::bf16);
  }

  float at(const std::vector<float>& matrix, std::int64_t row, std::int64_t columns, std::int64_t column) const {
    return matrix[static_cast<std::size_t>(row * columns + column)];
  }

  // The rows of `left` times the columns of `right`.
  void expect_output(const std::vector<float>& output, const DenseNumbers& numbers) const {
    const std::vector<float> input = rounded(numbers.input), kernel = rounded(numbers.kernel);
    for (std::int64_t row = 0; row < shape_.rows; ++row) {
      for (std::int64_t column = 0; column < shape_.outputs; ++column) {
        ExactSum sum;
        if (shape_.has_bias) sum.add(numbers.bias[static_cast<std::size_t>(column)], 1);
        for (std::int64_t i = 0; i < shape_.inputs; ++i) {
          sum.add(at(input, row, shape_.inputs, i), at(kernel, i, shape_.outputs, column));
        }
        sum.expect_near(at(output, row, shape_.outputs, column));
      }
    }
  }

  const DenseShape shape_ = GetParam();
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Shapes, DenseInBf16,
                         testing::Values(DenseShape{1, 1, 1}, DenseShape{5, 7, 3}, DenseShape{33, 65, 17},
                                         DenseShape{64, 128, 96, false}, DenseShape{3, 300, 1}, DenseShape{130, 2, 70}),
                         [](const auto& test) {
                           return std::to_string(test.param.rows) + "x" + std::to_string(test.param.inputs) + "x" +
                                  std::to_string(test.param.outputs);
                         });

TEST_P(DenseInBf16, TheForwardPassMultipliesRoundedFactors) {
  const DenseNumbers numbers(shape_);
  for (const bool is_training : {true, false}) {
    std::vector<float> output(numbers.output_gradient.size());
    backend_->dense(shape_, {.training = is_training})
        ->forward(numbers.input.data(), numbers.kernel.data(), numbers.bias.data(), output.data());
    expect_output(output, numbers);
  }
}

TEST_P(DenseInBf16, TheInputsGradientIsAProductOfRoundedFactors) {
  const DenseNumbers numbers(shape_);
  const std::vector<float> kernel = rounded(numbers.kernel), gradient = rounded(numbers.output_gradient);
  for (const bool is_training : {true, false}) {
    const auto operation = backend_->dense(shape_, {.training = is_training, .input_gradient = true});
    std::vector<float> output(numbers.output_gradient.size()), result(numbers.input.size());
    operation->forward(numbers.input.data(), numbers.kernel.data(), numbers.bias.data(), output.data());
    operation->backward_input(numbers.kernel.data(), numbers.output_gradient.data(), result.data());

    for (std::int64_t row = 0; row < shape_.rows; ++row) {
      for (std::int64_t i = 0; i < shape_.inputs; ++i) {
        ExactSum sum;
        for (std::int64_t column = 0; column < shape_.outputs; ++column) {
          sum.add(at(gradient, row, shape_.outputs, column), at(kernel, i, shape_.outputs, column));
        }
        sum.expect_near(at(result, row, shape_.inputs, i));
      }
    }
  }
}

TEST_P(DenseInBf16, TheKernelsGradientIsAProductOfRoundedFactors) {
  const DenseNumbers numbers(shape_);
  const std::vector<float> input = rounded(numbers.input), gradient = rounded(numbers.output_gradient);
  const DenseResults results =
      dense_results_of(*backend_->dense(shape_, {.training = true, .input_gradient = true}), numbers);

  for (std::int64_t i = 0; i < shape_.inputs; ++i) {
    for (std::int64_t column = 0; column < shape_.outputs; ++column) {
      ExactSum sum;
      for (std::int64_t row = 0; row < shape_.rows; ++row) {
        sum.add(at(input, row, shape_.inputs, i), at(gradient, row, shape_.outputs, column));
      }
      sum.expect_near(at(results.kernel_gradient, i, shape_.outputs, column));
    }
  }
}

// A sum of gradients, without a product whose factors were rounded.
TEST_P(DenseInBf16, TheGradientOfTheBiasIsThatOfF32) {
  const DenseNumbers numbers(shape_);
  const auto bias_gradient = [&](Backend& backend) {
    return dense_results_of(*backend.dense(shape_, {.training = true, .input_gradient = true}), numbers).bias_gradient;
  };

  EXPECT_EQ(bias_gradient(*backend_), bias_gradient(*make_cpu_backend(1)));
}

// What an operation keeps belongs to one forward pass.
TEST_P(DenseInBf16, AStepDoesNotDependOnTheStepBefore) {
  const auto used = backend_->dense(shape_, {.training = true, .input_gradient = true});
  dense_results_of(*used, DenseNumbers(shape_, 10));
  const auto fresh = backend_->dense(shape_, {.training = true, .input_gradient = true});

  EXPECT_EQ(dense_results_of(*used, DenseNumbers(shape_)), dense_results_of(*fresh, DenseNumbers(shape_)));
}

TEST_P(DenseInBf16, AnotherBackEndGivesTheSameBits) {
  const auto bits = [&] {
    const auto backend = make_cpu_backend(1, Precision::bf16);
    return dense_results_of(*backend->dense(shape_, {.training = true, .input_gradient = true}), DenseNumbers(shape_));
  };

  EXPECT_EQ(bits(), bits());
}

class SpecialNumbersInBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
  }

  // `value` times 1 in a layer of one input and one output.
  static float multiplied(float value, bool is_training) {
    const auto backend = make_cpu_backend(1, Precision::bf16);
    const float one = 1;
    float output = 77;
    backend->dense({1, 1, 1, false}, {.training = is_training})->forward(&value, &one, nullptr, &output);
    return output;
  }
};

TEST_F(SpecialNumbersInBf16, AreRoundedAsOnDevices) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const bool is_training : {true, false}) {
    EXPECT_TRUE(std::isnan(multiplied(std::numeric_limits<float>::quiet_NaN(), is_training)));
    EXPECT_EQ(multiplied(std::numeric_limits<float>::max(), is_training), kInfinity);
    EXPECT_EQ(multiplied(-kInfinity, is_training), -kInfinity);
    // The largest that stays finite, and ties to even on both sides.
    EXPECT_EQ(multiplied(0x1.FEFFFEp127F, is_training), 0x1.FEp127F);
    EXPECT_EQ(multiplied(0x1.01p0F, is_training), 1);
    EXPECT_EQ(multiplied(0x1.03p0F, is_training), 0x1.04p0F);
    EXPECT_EQ(multiplied(0x1p-126F, is_training), 0x1p-126F);
  }
}

// The instructions take them as zero.
TEST_F(SpecialNumbersInBf16, SubnormalFactorsCountAsZero) {
  for (const bool is_training : {true, false}) EXPECT_EQ(multiplied(0x1p-130F, is_training), 0);
}

}  // namespace
}  // namespace holdfast::compute
