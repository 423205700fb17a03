// Checks which numbers the products multiply at each precision, with a library in host memory that does exactly what it
// is told. gpu/layers tests the real library on a device.

#include "compute/cuda/products/matrix_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "emulation/host_cublas.h"
#include "gpu/support/gpu_test.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

class Products : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override { host_cublas::library() = {}; }
  void TearDown() override { EXPECT_FALSE(host_cublas::library().was_misled); }

  // The layout that the product has for a factor.
  static double factor(float value) {
    if (GetParam() != Precision::bf16) return value;
    return std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
  }

  static Floats values(std::uint64_t seed, std::int64_t count) {
    return random_values(seed, static_cast<std::size_t>(count));
  }

  // The product by its definition, of [rows, inner] and [inner, columns] or their transposes.
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

  // Both have sums in double, so they differ only by the rounding of those.
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
                    fmt::format("{} x {} x {}{}{}", shape.rows, shape.inner, shape.columns,
                                is_left_transposed ? ", left transposed" : "",
                                is_right_transposed ? ", right transposed" : ""));
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

// Without the check, the product would fail in the first step.
TEST_P(Products, TakeTheFirstAlgorithmThatTheDeviceSupports) {
  host_cublas::library().refused_algorithms = 2;
  const ProductShape shape = {.rows = 6, .inner = 11, .columns = 10, .precision = GetParam()};
  const Floats left = values(1, 66), right = values(2, 110);

  const Floats result = run(shape, left, right, {0}, values(4, 60), false);

  expect_near(expected(shape, left, right, {}), result, "by the third");
}

TEST_P(Products, AreRefusedWhereTheDeviceSupportsNoAlgorithm) {
  host_cublas::library().refused_algorithms = 3;

  EXPECT_THROW(MatrixProduct(context_, "a product", {.rows = 6, .inner = 11, .columns = 10, .precision = GetParam()}),
               Error);
}

TEST_P(Products, HaveFactorsOfThePrecisionAndSumsOfF32) {
  const ProductShape shape = {.rows = 2, .inner = 3, .columns = 4, .precision = GetParam()};

  run(shape, values(1, 6), values(2, 12), {0}, values(3, 8), false);

  EXPECT_EQ(host_cublas::library().factor_type, GetParam() == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F);
  EXPECT_EQ(host_cublas::library().compute_type,
            GetParam() == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
}

struct DenseNumbers {
  Floats input, kernel, bias, gradient;
};
struct DenseResults {
  Floats output, input_gradient, kernel_gradient, bias_gradient;
};

class DenseLayers : public Products {
 protected:
  static constexpr DenseShape kShape = {.rows = 9, .inputs = 13, .outputs = 10};
  static constexpr Use kUse = {.training = true, .input_gradient = true};

  static DenseNumbers numbers(std::uint64_t seed) {
    return {values(seed, 9 * 13), values(seed + 1, 13 * 10), values(seed + 2, 10), values(seed + 3, 9 * 10)};
  }

  static DenseResults on_host(const DenseNumbers& numbers) {
    const auto rounded = [](Floats array) {
      for (float& number : array) number = static_cast<float>(factor(number));
      return array;
    };
    const Floats input = rounded(numbers.input), kernel = rounded(numbers.kernel), gradient = rounded(numbers.gradient);
    const auto host = make_cpu_backend(1);
    const auto operation = host->dense(kShape, kUse);
    DenseResults results{Floats(90), Floats(9 * 13), Floats(130), Floats(10)};
    Floats unused(130);
    operation->forward(input.data(), kernel.data(), numbers.bias.data(), results.output.data());
    operation->backward_input(kernel.data(), gradient.data(), results.input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), results.kernel_gradient.data(),
                                results.bias_gradient.data());
    operation->backward_weights(input.data(), numbers.gradient.data(), unused.data(), results.bias_gradient.data());
    return results;
  }

  static DenseResults results_of(DenseOperation& operation, const DenseNumbers& numbers, bool weights_first) {
    const auto device = [](const Floats& array) { return DeviceArray(host_memory(), array); };
    const DeviceArray input = device(numbers.input), kernel = device(numbers.kernel), bias = device(numbers.bias),
                      gradient = device(numbers.gradient), output = device(numbers.gradient),
                      of_input = device(numbers.input), of_kernel = device(numbers.kernel),
                      of_bias = device(numbers.bias);
    operation.forward(input.data(), kernel.data(), bias.data(), output.data());
    if (!weights_first) operation.backward_input(kernel.data(), gradient.data(), of_input.data());
    operation.backward_weights(input.data(), gradient.data(), of_kernel.data(), of_bias.data());
    if (weights_first) operation.backward_input(kernel.data(), gradient.data(), of_input.data());
    return {output.values(), of_input.values(), of_kernel.values(), of_bias.values()};
  }

  // The host's sums are f32.
  static void expect_close(const DenseResults& expected, const DenseResults& actual) {
    const auto compare = [](const Floats& wanted, const Floats& given, const char* what) {
      for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted[i], given[i], 1e-5) << what << " " << i;
    };
    compare(expected.output, actual.output, "output");
    compare(expected.input_gradient, actual.input_gradient, "gradient of the input");
    compare(expected.kernel_gradient, actual.kernel_gradient, "gradient of the kernel");
    compare(expected.bias_gradient, actual.bias_gradient, "gradient of the bias");
  }
};

// Runs all passes for several steps in a shared workspace. No step may use anything of the last one.
TEST_P(DenseLayers, GiveTheHostsNumbersInEachStep) {
  const auto operation = make_cuda_dense(context_, GetParam(), kShape, kUse);

  for (const std::uint64_t step : {10, 20, 30}) {
    SCOPED_TRACE(step);
    const DenseNumbers of_step = numbers(step);
    expect_close(on_host(of_step), results_of(*operation, of_step, step == 20));
  }
}

TEST_P(DenseLayers, ComputeNoInputGradientUnlessAsked) {
  const auto operation = make_cuda_dense(context_, GetParam(), kShape, {.training = true});
  const DenseNumbers given = numbers(1);
  const auto device = [](const Floats& array) { return DeviceArray(host_memory(), array); };
  const DeviceArray input = device(given.input), kernel = device(given.kernel), bias = device(given.bias),
                    gradient = device(given.gradient), output = device(given.gradient),
                    of_kernel = device(given.kernel), of_bias = device(given.bias);

  operation->forward(input.data(), kernel.data(), bias.data(), output.data());
  operation->backward_weights(input.data(), gradient.data(), of_kernel.data(), of_bias.data());

  DenseResults expected = on_host(given);
  expected.input_gradient.clear();
  expect_close(expected, {output.values(), {}, of_kernel.values(), of_bias.values()});
}

INSTANTIATE_TEST_SUITE_P(Precisions, DenseLayers, testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

INSTANTIATE_TEST_SUITE_P(Precisions, Products, testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace holdfast::compute
