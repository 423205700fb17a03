// The host runs these kernels (emulation/grid.h).

#include "compute/cuda/kernels/columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "gpu/support/gpu_test.h"

namespace holdfast::compute {
namespace {

// Whole numbers, because their sums are exact in any order.
std::vector<float> whole_numbers(std::uint64_t seed, std::size_t count) {
  std::vector<float> values = random_values(seed, count);
  for (float& value : values) value = std::round(1000 * value);
  return values;
}

// Filled with values that cannot be a sum, and followed by an element that must not change.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : memory_(bytes / sizeof(double) + 1) {
    std::memset(memory_.data(), 0xFF, memory_.size() * sizeof(double));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(memory_.data()); }
  bool is_rest_untouched() const { return std::isnan(memory_.back()); }

 private:
  std::vector<double> memory_;
};

class Columns : public testing::TestWithParam<MatrixExtent> {
 protected:
  std::size_t columns() const { return static_cast<std::size_t>(GetParam().columns); }
  std::size_t elements() const { return static_cast<std::size_t>(GetParam().rows) * columns(); }
};

TEST_P(Columns, AreSummedOverAllRows) {
  const std::vector<float> matrix = whole_numbers(1, elements());
  std::vector<double> expected(columns());
  for (std::size_t i = 0; i < matrix.size(); ++i) expected[i % columns()] += matrix[i];
  Workspace workspace(column_sums_bytes(GetParam()));
  std::vector<float> sums(columns() + 1, -1);

  sum_columns(nullptr, "a sum", GetParam(), matrix.data(), workspace.data(), sums.data());

  for (std::size_t i = 0; i < columns(); ++i) EXPECT_EQ(sums[i], static_cast<float>(expected[i])) << "column " << i;
  EXPECT_EQ(sums.back(), -1);
  EXPECT_TRUE(workspace.is_rest_untouched());
}

TEST_P(Columns, HaveTheirBiasAddedInEachRow) {
  for (const std::size_t padding : {0, 1}) {
    std::vector<float> expected = random_values(1, elements());
    const std::vector<float> bias = random_values(2, columns());
    const DeviceArray matrix(host_memory(), expected, padding);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % columns()];

    add_to_columns(nullptr, "a bias", GetParam(), bias.data(), matrix.data());

    EXPECT_EQ(bit_differences(expected, matrix.values()), "") << "padding " << padding;
  }
}

// Fewer columns than a tile, one tile, and several. Rows of one chunk, of several, and of the largest number of chunks,
// with few columns and with many. Threads whose batches are all complete, and threads with an incomplete last one.
INSTANTIATE_TEST_SUITE_P(Extents, Columns,
                         testing::Values(MatrixExtent{1, 1}, MatrixExtent{1, 7}, MatrixExtent{5, 1},
                                         MatrixExtent{257, 1}, MatrixExtent{1000, 2}, MatrixExtent{127, 3},
                                         MatrixExtent{128, 6}, MatrixExtent{20'011, 6}, MatrixExtent{300, 8},
                                         MatrixExtent{300, 10}, MatrixExtent{700, 16}, MatrixExtent{200, 31},
                                         MatrixExtent{200, 32}, MatrixExtent{1100, 33}, MatrixExtent{65, 100},
                                         MatrixExtent{3, 300}, MatrixExtent{64, 40}, MatrixExtent{450, 4096}),
                         [](const testing::TestParamInfo<MatrixExtent>& extent) {
                           return std::to_string(extent.param.rows) + "_by_" + std::to_string(extent.param.columns);
                         });

}  // namespace
}  // namespace holdfast::compute
