// Products with one kernel that is packed once: those of a dense layer, but for the order of their sums.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/repeated_product.h"

namespace holdfast::compute {
namespace {

std::vector<float> drawn(std::int64_t floats, std::uint32_t seed) {
  std::vector<float> array(static_cast<std::size_t>(floats));
  std::minstd_rand random(seed);
  for (float& value : array) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return array;
}

struct Factors {
  explicit Factors(const RepeatedProductShape& shape, std::uint32_t seed = 1)
      : input(drawn(shape.rows * shape.inputs, seed)),
        kernel(drawn(shape.inputs * shape.outputs, seed + 1)),
        bias(drawn(shape.outputs, seed + 2)) {}

  std::vector<float> input, kernel, bias;
};

std::vector<float> product(RepeatedProductOperation& operation, const RepeatedProductShape& shape,
                           const Factors& factors) {
  std::vector<float> output(static_cast<std::size_t>(shape.rows * shape.outputs));
  operation.set_kernel(factors.kernel.data());
  operation.run(factors.input.data(), shape.has_bias ? factors.bias.data() : nullptr, output.data());
  return output;
}

std::vector<float> product(const RepeatedProductShape& shape, const Factors& factors, int threads = 1) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(threads);
  return product(*backend->repeated_product(shape), shape, factors);
}

// In double, and the bound of what f32 may differ by: each element is a sum of `inputs` products below 1, and a bias.
std::vector<double> exact_product(const RepeatedProductShape& shape, const Factors& factors) {
  std::vector<double> output;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    for (std::int64_t column = 0; column < shape.outputs; ++column) {
      double sum = shape.has_bias ? factors.bias[static_cast<std::size_t>(column)] : 0;
      for (std::int64_t i = 0; i < shape.inputs; ++i) {
        const std::int64_t place = shape.is_transposed ? column * shape.inputs + i : i * shape.outputs + column;
        sum += static_cast<double>(factors.input[static_cast<std::size_t>(row * shape.inputs + i)]) *
               static_cast<double>(factors.kernel[static_cast<std::size_t>(place)]);
      }
      output.push_back(sum);
    }
  }
  return output;
}

// Shapes that are packed on AVX2, or on AVX-512, and some that are not.
const std::vector<RepeatedProductShape> kShapes = {
    {.rows = 32, .inputs = 256, .outputs = 1024, .has_bias = true},
    {.rows = 32, .inputs = 1024, .outputs = 256, .is_transposed = true},
    {.rows = 1, .inputs = 8, .outputs = 32, .has_bias = true},
    {.rows = 5, .inputs = 24, .outputs = 8, .is_transposed = true},
    {.rows = 7, .inputs = 5, .outputs = 20, .has_bias = true},
    {.rows = 3, .inputs = 20, .outputs = 5, .is_transposed = true},
    {.rows = 9, .inputs = 1, .outputs = 1},
};

TEST(RepeatedProduct, IsAProductWithTheKernelAndABias) {
  for (const RepeatedProductShape& shape : kShapes) {
    const Factors factors(shape);
    const std::unique_ptr<Backend> backend = make_cpu_backend(1);
    const std::vector<double> expected = exact_product(shape, factors);
    const double bound = static_cast<double>((shape.inputs + 1) * (shape.inputs + 1)) * 6e-8;
    for (const std::vector<float>& found :
         {product(shape, factors), product(*repeated_dense(*backend, shape), shape, factors)}) {
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], bound) << shape.inputs << " x " << shape.outputs << ", element " << i;
      }
    }
  }
}

TEST(RepeatedProduct, KeepsNothingOfTheKernelBefore) {
  for (const RepeatedProductShape& shape : kShapes) {
    const Factors first(shape, 1), second(shape, 11);
    const std::unique_ptr<Backend> backend = make_cpu_backend(1);
    const std::unique_ptr<RepeatedProductOperation> operation = backend->repeated_product(shape);
    product(*operation, shape, first);

    EXPECT_EQ(product(*operation, shape, second), product(shape, second));
  }
}

TEST(RepeatedProduct, GivesTheSameInEveryStepWithTheSameInput) {
  const RepeatedProductShape& shape = kShapes[0];
  const Factors factors(shape), other(shape, 5);
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const std::unique_ptr<RepeatedProductOperation> operation = backend->repeated_product(shape);
  const std::vector<float> first = product(*operation, shape, factors);
  std::vector<float> output(first.size());
  operation->run(other.input.data(), factors.bias.data(), output.data());
  operation->run(factors.input.data(), factors.bias.data(), output.data());

  EXPECT_EQ(output, first);
}

TEST(RepeatedProduct, HasTheBitsOfADenseLayerUnlessItsArithmeticHasAName) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  if (!backend->repeated_product_arithmetic().empty()) GTEST_SKIP() << "this processor has a name for it";
  for (const RepeatedProductShape& shape : kShapes) {
    const Factors factors(shape);
    const std::vector<float> dense = product(*repeated_dense(*backend, shape), shape, factors);
    EXPECT_EQ(product(shape, factors), dense);
  }
}

}  // namespace
}  // namespace holdfast::compute
