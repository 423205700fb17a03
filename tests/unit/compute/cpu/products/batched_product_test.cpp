// Products of many matrices at bf16, of factors that lie as attention has them.

#include "compute/batched_product.h"

#include <gtest/gtest.h>

#include "compute/backend.h"
#include "support/cpu_bf16.h"
#include "unit/compute/arithmetic/support/values.h"
#include "unit/compute/cpu/support/bf16_numbers.h"

namespace holdfast::compute {
namespace {

struct BatchedProductCase {
  const char* name;
  BatchedProductShape shape;
};

void PrintTo(const BatchedProductCase& product, std::ostream* out) {
  *out << product.name;
}

// Samples, heads, positions and width.
constexpr std::int64_t kSamples = 3, kHeads = 2, kLength = 9, kWidth = 5;

// An array [samples, positions, heads, width], from which each head takes its matrix [positions, width].
constexpr MatrixPlaces kHeadsOfRows = {
    .batch = {kLength * kHeads * kWidth, kWidth}, .row = kHeads * kWidth, .column = 1};
constexpr MatrixPlaces kTransposedHeads = {
    .batch = {kLength * kHeads * kWidth, kWidth}, .row = 1, .column = kHeads * kWidth};
constexpr MatrixPlaces kShares = {.batch = {kHeads * kLength * kLength, kLength* kLength}, .row = kLength, .column = 1};
constexpr MatrixPlaces kTransposedShares = {
    .batch = {kHeads * kLength * kLength, kLength* kLength}, .row = 1, .column = kLength};
constexpr MatrixPlaces kOneMatrix = {.batch = {0, 0}, .row = kWidth, .column = 1};

BatchedProductShape shape_of(std::int64_t rows, std::int64_t inner, std::int64_t columns, const MatrixPlaces& left,
                             const MatrixPlaces& right, const MatrixPlaces& result) {
  return {.batch_axes = 2,
          .batch = {kSamples, kHeads},
          .rows = rows,
          .inner = inner,
          .columns = columns,
          .left = left,
          .right = right,
          .result = result};
}

class BatchedProductsInBf16 : public testing::TestWithParam<BatchedProductCase> {};

INSTANTIATE_TEST_SUITE_P(
    Places, BatchedProductsInBf16,
    testing::Values(
        BatchedProductCase{"Scores", shape_of(kLength, kWidth, kLength, kHeadsOfRows, kTransposedHeads, kShares)},
        BatchedProductCase{"Seen", shape_of(kLength, kLength, kWidth, kShares, kHeadsOfRows, kHeadsOfRows)},
        BatchedProductCase{"GradientOfValues",
                           shape_of(kLength, kLength, kWidth, kTransposedShares, kHeadsOfRows, kHeadsOfRows)},
        BatchedProductCase{"OneForAll", shape_of(kLength, kWidth, kWidth, kHeadsOfRows, kOneMatrix, kHeadsOfRows)}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(BatchedProductsInBf16, MultiplyRoundedFactors) {
  if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
  const BatchedProductShape& shape = GetParam().shape;
  constexpr std::int64_t kElements = kSamples * kHeads * kLength * (kLength > kWidth ? kLength : kWidth);
  const std::vector<float> left = random_values(kElements, 1), right = random_values(kElements, 2);
  std::vector<float> result(static_cast<std::size_t>(kElements), 77.0F);

  make_cpu_backend(1, Precision::bf16)->batched_product(shape)->run(left.data(), right.data(), result.data());

  const auto at = [](const MatrixPlaces& places, std::int64_t sample, std::int64_t head, std::int64_t row,
                     std::int64_t column) {
    return static_cast<std::size_t>(sample * places.batch[0] + head * places.batch[1] + row * places.row +
                                    column * places.column);
  };
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (std::int64_t column = 0; column < shape.columns; ++column) {
          ExactSum sum;
          for (std::int64_t i = 0; i < shape.inner; ++i) {
            sum.add(rounded(left[at(shape.left, sample, head, row, i)]),
                    rounded(right[at(shape.right, sample, head, i, column)]));
          }
          sum.expect_near(result[at(shape.result, sample, head, row, column)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
