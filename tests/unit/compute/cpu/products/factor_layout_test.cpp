// Gaps between rows of a factor change where it lies, and no bit of a product.

#include "compute/cpu/products/factor_layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "compute/backend.h"
#include "compute/batched_product.h"

namespace holdfast::compute {
namespace {

bool is_avx2() {
  return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx2;
}

MemoryDesc matrix(std::int64_t rows, std::int64_t columns, Tag tag = Tag::ab) {
  return {{rows, columns}, DataType::f32, tag};
}

bool is_spread(const MemoryDesc& callers, const MemoryDesc& chosen) {
  return !(callers == chosen);
}

TEST(FactorLayout, SpreadsColumnsThatShareSetsOfTheCache) {
  if (!is_avx2()) GTEST_SKIP() << "oneDNN has other products on this processor";
  const ProductFactors wide = {.left = matrix(32, 256), .right = matrix(256, 1024)};
  const ProductFactors deep = {.left = matrix(1024, 2048, Tag::ba), .right = matrix(2048, 128)};
  const ProductFactors in_four_sets = {.left = matrix(256, 2048, Tag::ba), .right = matrix(2048, 256)};

  EXPECT_FALSE(is_spread(wide.left, spread_in_cache(wide).left));
  EXPECT_EQ(spread_in_cache(wide).right.data.format_desc.blocking.strides[0], 1040);
  EXPECT_EQ(spread_in_cache(deep).left.data.format_desc.blocking.strides[1], 1040);
  EXPECT_FALSE(is_spread(deep.right, spread_in_cache(deep).right));
  EXPECT_EQ(spread_in_cache(in_four_sets).left.data.format_desc.blocking.strides[1], 272);
  EXPECT_EQ(spread_in_cache(in_four_sets).right.data.format_desc.blocking.strides[0], 272);
}

TEST(FactorLayout, LeavesFactorsForWhichACopyWouldNotPay) {
  const auto expect_left_alone = [](const ProductFactors& factors) {
    const ProductFactors chosen = spread_in_cache(factors);
    EXPECT_FALSE(is_spread(factors.left, chosen.left) || is_spread(factors.right, chosen.right));
  };

  // No neighbours in a set; read by few rows, for two sets and for four; a short column; copied by oneDNN; read along
  // its rows.
  expect_left_alone({.left = matrix(32, 256), .right = matrix(256, 1000)});
  expect_left_alone({.left = matrix(31, 256), .right = matrix(256, 1024)});
  expect_left_alone({.left = matrix(255, 256), .right = matrix(256, 768)});
  expect_left_alone({.left = matrix(32, 15), .right = matrix(15, 1024)});
  expect_left_alone({.left = matrix(2048, 256), .right = matrix(256, 1024)});
  expect_left_alone({.left = matrix(32, 1024), .right = matrix(1024, 256, Tag::ba)});
}

// A product whose factors lie in arrays with `gap` floats after each row.
std::vector<float> product_with_gaps(const BatchedProductShape& dense, std::int64_t gap) {
  BatchedProductShape shape = dense;
  const auto spread = [gap](MatrixPlaces& places, std::int64_t rows, std::int64_t columns) {
    std::int64_t& stride = places.column == 1 ? places.row : places.column;
    stride = (places.column == 1 ? columns : rows) + gap;
  };
  spread(shape.left, shape.rows, shape.inner);
  spread(shape.right, shape.inner, shape.columns);
  const auto filled = [](const MatrixPlaces& places, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
    std::vector<float> array(static_cast<std::size_t>(rows * places.row + columns * places.column));
    std::minstd_rand random(seed);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        array[static_cast<std::size_t>(row * places.row + column * places.column)] =
            static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
      }
    }
    return array;
  };
  const std::vector<float> left = filled(shape.left, shape.rows, shape.inner, 1);
  const std::vector<float> right = filled(shape.right, shape.inner, shape.columns, 2);
  std::vector<float> result(static_cast<std::size_t>(shape.rows * shape.columns));
  make_cpu_backend(1)->batched_product(shape)->run(left.data(), right.data(), result.data());
  return result;
}

TEST(FactorLayout, ChangesNoBitOfAProduct) {
  // Elsewhere nothing is spread, and the two layouts are the library's matter alone.
  if (!is_avx2()) GTEST_SKIP() << "oneDNN has other products on this processor";
  struct Case {
    std::int64_t rows, inner, columns;
    bool is_left_transposed, is_right_transposed;
  };
  for (const Case& one :
       {Case{32, 256, 1024, false, false}, Case{32, 1024, 256, false, true}, Case{256, 300, 1024, true, false},
        Case{256, 300, 256, true, false}, Case{512, 70, 512, true, false}, Case{1024, 129, 64, true, true},
        Case{33, 16, 2048, true, false}}) {
    BatchedProductShape shape = {.rows = one.rows, .inner = one.inner, .columns = one.columns};
    if (one.is_left_transposed) shape.left = {.row = 1, .column = one.rows};
    if (one.is_right_transposed) shape.right = {.row = 1, .column = one.inner};
    shape.result.row = one.columns;

    EXPECT_EQ(product_with_gaps(shape, 0), product_with_gaps(shape, 8)) << one.rows << " x " << one.inner;
  }
}

}  // namespace
}  // namespace holdfast::compute
