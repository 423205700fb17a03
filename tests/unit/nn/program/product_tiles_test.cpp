// Tiles against the product of all rows, in double.

#include "nn/program/product_tiles.h"

#include <gtest/gtest.h>

#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::random_values;

constexpr std::int64_t kRows = 11;
constexpr LastProduct kProduct = {.rows = kRows,
                                  .inputs = 5,
                                  .outputs = 9,
                                  .has_bias = true,
                                  .has_input_gradient = true,
                                  .has_weight_gradients = true};

// sum over k of left[row, k] right[k, column], of row-major arrays that may be read as their transposes.
struct Factor {
  const std::vector<float>& values;
  std::size_t width;
  bool is_transposed = false;

  double at(std::size_t row, std::size_t column) const {
    return static_cast<double>(is_transposed ? values[column * width + row] : values[row * width + column]);
  }
};

double element(const Factor& left, const Factor& right, std::size_t inner, std::size_t row, std::size_t column) {
  double sum = 0;
  for (std::size_t k = 0; k < inner; ++k) sum += left.at(row, k) * right.at(k, column);
  return sum;
}

TEST(ProductTiles, ComputeTheProductAndItsGradients) {
  const std::vector<float> x = random_values(11 * 5, 1), kernel = random_values(5 * 9, 2), bias = random_values(9, 3);
  const std::vector<float> gradient = random_values(11 * 9, 4);
  const auto backend = compute::make_cpu_backend(1);
  for (const std::int64_t at_once : {1, 2, 4, 11, 50}) {
    SCOPED_TRACE(testing::Message() << at_once << " rows at once");
    ProductTiles tiles(at_once, *backend);
    std::vector<std::uint64_t> key;
    tiles.prepare(kProduct, kRows, true, key);
    std::vector<float> results(11 * 9), kernel_gradient(5 * 9);
    const auto loss = [&](const ProductTiles::Tile& tile) {
      EXPECT_EQ(tile.first, tile.number * at_once);
      std::copy_n(tile.results, tile.rows * 9, results.begin() + tile.first * 9);
      std::copy_n(gradient.begin() + tile.first * 9, tile.rows * 9, tile.gradient);
    };

    tiles.run({.input = x.data(), .kernel = kernel.data(), .bias = bias.data()}, {.kernel = kernel_gradient.data()},
              loss);

    // Sums of 11 products of numbers near 1, each rounded by 2^-24.
    constexpr double kTolerance = 11 * 8 * 0x1p-24;
    EXPECT_EQ(tiles.gradients()[1], kernel_gradient.data());
    for (std::size_t out = 0; out < 9; ++out) {
      double of_bias = 0;
      for (std::size_t row = 0; row < 11; ++row) {
        of_bias += static_cast<double>(gradient[row * 9 + out]);
        EXPECT_NEAR(static_cast<double>(results[row * 9 + out]),
                    element({x, 5}, {kernel, 9}, 5, row, out) + static_cast<double>(bias[out]), kTolerance);
      }
      EXPECT_NEAR(static_cast<double>(tiles.gradients()[2][out]), of_bias, kTolerance);
      for (std::size_t in = 0; in < 5; ++in) {
        EXPECT_NEAR(static_cast<double>(kernel_gradient[in * 9 + out]),
                    element({x, 5, true}, {gradient, 9}, 11, in, out), kTolerance);
      }
    }
    for (std::size_t row = 0; row < 11; ++row) {
      for (std::size_t in = 0; in < 5; ++in) {
        EXPECT_NEAR(static_cast<double>(tiles.gradients()[0][row * 5 + in]),
                    element({gradient, 9}, {kernel, 9, true}, 9, row, in), kTolerance);
      }
    }
  }
}

TEST(ProductTiles, TakeMemoryForResultsOfOneTileAlone) {
  const auto floats = [](std::int64_t at_once) { return ProductTiles::planned_floats(kProduct, 1600, at_once, true); };

  // Results and their gradient, less what the second tile adds: a part of the gradients of kernel and bias.
  EXPECT_EQ(floats(1600) - floats(160), 2U * (1600 - 160) * 9 - (48 + 16));
  EXPECT_EQ(ProductTiles::planned_floats(kProduct, 1600, 160, false), 160U * 9);
}

}  // namespace
}  // namespace holdfast
