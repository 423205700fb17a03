// Convolution by the column matrix, one element at a time, compared with the CPU back end.

#include "compute/arithmetic/convolution.h"

#include <gtest/gtest.h>

#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

struct ConvolutionCase {
  const char* name;
  ConvolutionShape shape;
};

// The extent of the column matrix.
float column_element(const ConvolutionPlan& plan, const Floats& input, std::int64_t index) {
  const std::int64_t at = input_of_column_element(plan, index);
  return at == kPadding ? 0 : input[static_cast<std::size_t>(at)];
}

class Convolutions : public testing::TestWithParam<ConvolutionCase> {
 protected:
  Convolutions()
      : shape_(GetParam().shape),
        plan_(shape_),
        windows_(plan_.samples * plan_.sample_windows()),
        input_(random_values(plan_.samples * plan_.sample_inputs(), 1)),
        kernel_(random_values(plan_.window_elements() * plan_.filters, 2)),
        bias_(random_values(plan_.filters, 3)),
        output_gradient_(random_values(windows_ * plan_.filters, 4)),
        backend_(make_cpu_backend(1)),
        operation_(backend_->convolution(shape_, {.training = true, .input_gradient = true})) {}

  // The column matrix.
  Floats columns() const {
    Floats columns;
    for (std::int64_t i = 0; i < windows_ * plan_.window_elements(); ++i) {
      columns.push_back(column_element(plan_, input_, i));
    }
    return columns;
  }

  const ConvolutionShape shape_;
  const ConvolutionPlan plan_;
  const std::int64_t windows_;
  const Floats input_, kernel_, bias_, output_gradient_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<ConvolutionOperation> operation_;
};

// Sums of up to a hundred products below 1, added in another order.
constexpr float kSumTolerance = 2e-5F;

float at(const Floats& matrix, std::int64_t row, std::int64_t columns, std::int64_t column) {
  return matrix[static_cast<std::size_t>(row * columns + column)];
}

TEST_P(Convolutions, TheForwardPassIsTheProductOfColumnsAndKernel) {
  Floats expected(output_gradient_.size());
  operation_->forward(input_.data(), kernel_.data(), bias_.data(), expected.data());

  const Floats matrix = columns();

  for (std::int64_t window = 0; window < windows_; ++window) {
    for (std::int64_t filter = 0; filter < plan_.filters; ++filter) {
      float sum = bias_[static_cast<std::size_t>(filter)];
      for (std::int64_t i = 0; i < plan_.window_elements(); ++i) {
        sum += at(matrix, window, plan_.window_elements(), i) * at(kernel_, i, plan_.filters, filter);
      }
      EXPECT_NEAR(sum, at(expected, window, plan_.filters, filter), kSumTolerance) << window << ", " << filter;
    }
  }
}

TEST_P(Convolutions, TheInputsGradientIsGatheredFromThatOfTheColumns) {
  Floats expected(input_.size());
  operation_->backward_input(kernel_.data(), output_gradient_.data(), expected.data());
  Floats column_gradient;
  for (std::int64_t window = 0; window < windows_; ++window) {
    for (std::int64_t i = 0; i < plan_.window_elements(); ++i) {
      float sum = 0;
      for (std::int64_t filter = 0; filter < plan_.filters; ++filter) {
        sum += at(output_gradient_, window, plan_.filters, filter) * at(kernel_, i, plan_.filters, filter);
      }
      column_gradient.push_back(sum);
    }
  }

  for (std::size_t i = 0; i < expected.size(); ++i) {
    float gradient = 0;
    for_each_column_element(plan_, static_cast<std::int64_t>(i),
                            [&](std::int64_t at) { gradient += column_gradient[static_cast<std::size_t>(at)]; });
    EXPECT_NEAR(gradient, expected[i], kSumTolerance) << i;
  }
}

TEST_P(Convolutions, TheKernelsGradientIsTheProductOfTransposedColumnsAndOutputGradient) {
  Floats expected(kernel_.size()), bias_gradient(bias_.size());
  operation_->backward_weights(input_.data(), output_gradient_.data(), expected.data(), bias_gradient.data());

  const Floats matrix = columns();

  for (std::int64_t i = 0; i < plan_.window_elements(); ++i) {
    for (std::int64_t filter = 0; filter < plan_.filters; ++filter) {
      float sum = 0;
      for (std::int64_t window = 0; window < windows_; ++window) {
        sum += at(matrix, window, plan_.window_elements(), i) * at(output_gradient_, window, plan_.filters, filter);
      }
      EXPECT_NEAR(sum, at(expected, i, plan_.filters, filter), kSumTolerance) << i << ", " << filter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions,
                         testing::Values(ConvolutionCase{"Narrow", {1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true}},
                                         ConvolutionCase{"Strided", {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true}},
                                         ConvolutionCase{"Unpadded", {1, 7, 6, 1, 6, 5, 5, 1, 1, Padding::valid, true}},
                                         ConvolutionCase{"Leaping", {2, 9, 8, 2, 3, 2, 2, 3, 3, Padding::valid, true}},
                                         ConvolutionCase{"Pointwise",
                                                         {2, 4, 3, 5, 6, 1, 1, 1, 1, Padding::valid, true}}),
                         [](const auto& instance) { return instance.param.name; });

TEST(ConvolutionPlan, NeedsNoColumnsWhereEachWindowIsAnElement) {
  const ConvolutionShape pointwise = {2, 4, 3, 5, 6, 1, 1, 1, 1, Padding::same, true};
  const ConvolutionPlan plan(pointwise);

  ASSERT_TRUE(plan.is_pointwise());
  const Floats input = random_values(plan.samples * plan.sample_inputs(), 1);
  for (std::size_t i = 0; i < input.size(); ++i) {
    EXPECT_EQ(column_element(plan, input, static_cast<std::int64_t>(i)), input[i]);
  }
  EXPECT_FALSE(ConvolutionPlan({2, 4, 3, 5, 6, 1, 1, 2, 1, Padding::same, true}).is_pointwise());
}

}  // namespace
}  // namespace holdfast::compute
