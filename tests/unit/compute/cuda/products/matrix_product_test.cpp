// Which numbers products are told to multiply, at each precision, with a library in the host's memory that does as it
// is told; what the library of a device makes of it is seen on one (gpu/layers).

#include "compute/cuda/matrix_product.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/cuda_operations.h"
#include "gpu/support/gpu_test.h"
#include "unit/compute/cuda/products/support/host_cublas.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

class Products : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override { host_cublas::library() = {}; }
  void TearDown() override { EXPECT_FALSE(host_cublas::library().was_misled); }

  // As the product has it for a factor.
  static double factor(float value) {
    if (GetParam() != Precision::bf16) return value;
    return std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
  }

  static Floats values(std::uint64_t seed, std::int64_t count) {
    return random_values(seed, static_cast<std::size_t>(count));
  }

  // By the definition, of [rows, inner] and [inner, columns], or of their transposes.
  static Floats expected(const ProductShape& shape, const Floats& left, const Floats& right, const Floats& bias) {
    Floats result;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      for (std::int64_t column = 0; column < shape.columns; ++column) {
        double sum = shape.has_bias ? bias[static_cast<std::size_t>(column)] : 0;
        for (std::int64_t i = 0; i < shape.inner; ++i) {
          const std::int64_t at_left = shape.is_left_transposed ? i * shape.rows + row : row * shape.inner + i;
          const std::int64_t at_right =
              shape.is_right_transposed ? column * shape.inner + i : i * shape.columns + column;
          sum += factor(left[static_cast<std::size_t>(at_left)]) * factor(right[static_cast<std::size_t>(at_right)]);
        }
        result.push_back(static_cast<float>(sum));
      }
    }
    return result;
  }

  Floats run(const ProductShape& shape, const Floats& left, const Floats& right, const Floats& bias,
             const Floats& before, bool adds) {
    MatrixProduct product(context_, "a product", shape);
    context_.reserve_workspace(product.workspace_bytes());
    const DeviceArray left_array(host_memory(), left), right_array(host_memory(), right),
        bias_array(host_memory(), bias), result(host_memory(), before);
    product.run({.left = left_array.data(),
                 .right = right_array.data(),
                 .bias = bias_array.data(),
                 .result = result.data(),
                 .adds = adds},
                context_.workspace());
    return result.values();
  }

  // Sums in double, in both: what is left is their rounding.
  static void expect_near(const Floats& expected, const Floats& actual, const std::string& what) {
    ASSERT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(expected[i], actual[i], 1e-6 * (1 + std::abs(expected[i]))) << what << ", element " << i;
    }
  }

  CudaContext context_{0};
};

struct Extents {
  std::int64_t rows, inner, columns;
};

TEST_P(Products, AreThoseOfRowMajorArrays) {
  for (const Extents& extents :
       std::vector<Extents>{{1, 1, 1}, {3, 5, 7}, {8, 16, 8}, {4, 33, 9}, {31, 13, 17}, {5, 300, 1}}) {
    for (const bool is_left_transposed : {false, true}) {
      for (const bool is_right_transposed : {false, true}) {
        const ProductShape shape = {.rows = extents.rows,
                                    .inner = extents.inner,
                                    .columns = extents.columns,
                                    .is_left_transposed = is_left_transposed,
                                    .is_right_transposed = is_right_transposed,
                                    .has_bias = extents.inner % 2 == 1,
                                    .precision = GetParam()};
        const Floats left = values(1, shape.rows * shape.inner), right = values(2, shape.inner * shape.columns),
                     bias = values(3, shape.columns);

        const Floats result = run(shape, left, right, bias, values(4, shape.rows * shape.columns), false);

        expect_near(expected(shape, left, right, bias), result,
                    std::to_string(shape.rows) + " x " + std::to_string(shape.inner) + " x " +
                        std::to_string(shape.columns) + (is_left_transposed ? ", left transposed" : "") +
                        (is_right_transposed ? ", right transposed" : ""));
      }
    }
  }
}

TEST_P(Products, AddToWhatIsThere) {
  const ProductShape shape = {.rows = 6, .inner = 11, .columns = 10, .precision = GetParam()};
  const Floats left = values(1, 66), right = values(2, 110), before = values(3, 60);
  Floats sum = expected(shape, left, right, {});
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += before[i];

  expect_near(sum, run(shape, left, right, {0}, before, true), "the sum");
}

TEST_P(Products, AddTheBiasAfterwardsWhereTheLibraryCannot) {
  host_cublas::library().refuses_bias = true;
  const ProductShape shape = {.rows = 6, .inner = 11, .columns = 10, .has_bias = true, .precision = GetParam()};
  const Floats left = values(1, 66), right = values(2, 110), bias = values(3, 10);

  const Floats result = run(shape, left, right, bias, values(4, 60), false);

  expect_near(expected(shape, left, right, bias), result, "with the bias");
}

TEST_P(Products, HaveFactorsOfThePrecisionAndSumsOfF32) {
  const ProductShape shape = {.rows = 2, .inner = 3, .columns = 4, .precision = GetParam()};

  run(shape, values(1, 6), values(2, 12), {0}, values(3, 8), false);

  EXPECT_EQ(host_cublas::library().factor_type, GetParam() == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F);
  EXPECT_EQ(host_cublas::library().compute_type,
            GetParam() == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
}

// All passes, in a workspace that each of them asked for, beside the host's.
TEST_P(Products, MakeADenseLayer) {
  const DenseShape shape = {.rows = 9, .inputs = 13, .outputs = 10};
  const auto rounded = [](Floats numbers) {
    for (float& number : numbers) number = static_cast<float>(factor(number));
    return numbers;
  };
  const Floats input = values(1, 9 * 13), kernel = values(2, 13 * 10), bias = values(3, 10), gradient = values(4, 90);
  const auto host = make_cpu_backend(1);
  const auto expected_operation = host->dense(shape, {.training = true, .input_gradient = true});
  Floats output(90), input_gradient(9 * 13), kernel_gradient(130), bias_gradient(10), unused(130), unused_bias(10);
  expected_operation->forward(rounded(input).data(), rounded(kernel).data(), bias.data(), output.data());
  expected_operation->backward_input(rounded(kernel).data(), rounded(gradient).data(), input_gradient.data());
  expected_operation->backward_weights(rounded(input).data(), rounded(gradient).data(), kernel_gradient.data(),
                                       unused_bias.data());
  expected_operation->backward_weights(input.data(), gradient.data(), unused.data(), bias_gradient.data());
  const auto device = [](const Floats& numbers) { return DeviceArray(host_memory(), numbers); };
  const DeviceArray inputs = device(input), kernels = device(kernel), biases = device(bias),
                    gradients = device(gradient), outputs = device(gradient), input_gradients = device(input),
                    kernel_gradients = device(kernel), bias_gradients = device(bias);

  const auto operation = make_cuda_dense(context_, GetParam(), shape, {.training = true, .input_gradient = true});
  operation->forward(inputs.data(), kernels.data(), biases.data(), outputs.data());
  operation->backward_input(kernels.data(), gradients.data(), input_gradients.data());
  operation->backward_weights(inputs.data(), gradients.data(), kernel_gradients.data(), bias_gradients.data());

  // The host's sums are f32.
  const auto expect_close = [](const Floats& wanted, const Floats& actual, const char* what) {
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted[i], actual[i], 1e-5) << what << " " << i;
  };
  expect_close(output, outputs.values(), "output");
  expect_close(input_gradient, input_gradients.values(), "gradient of the input");
  expect_close(kernel_gradient, kernel_gradients.values(), "gradient of the kernel");
  expect_close(bias_gradient, bias_gradients.values(), "gradient of the bias");
}

INSTANTIATE_TEST_SUITE_P(Precisions, Products, testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace holdfast::compute
