// The host runs these kernels (emulation/grid.h).

#include "compute/cuda/runtime/cuda_arrays.h"

#include <gtest/gtest.h>

#include <vector>

#include "gpu/support/gpu_test.h"

namespace holdfast::compute {
namespace {

void expect_gathered(std::size_t row_floats, std::size_t row_count, std::size_t padding) {
  constexpr std::size_t kSourceRows = 7;
  const std::vector<float> source = random_values(1, kSourceRows * row_floats);
  std::vector<std::int64_t> rows;
  std::vector<float> expected;
  for (std::size_t i = 0; i < row_count; ++i) {
    const std::size_t row = (3 * i + i / 5) % kSourceRows;
    rows.push_back(static_cast<std::int64_t>(row));
    expected.insert(expected.end(), source.data() + row * row_floats, source.data() + (row + 1) * row_floats);
  }
  constexpr float kPadding = 77;
  expected.push_back(kPadding);
  const DeviceArray from(host_memory(), source, padding);
  const DeviceArray to(host_memory(), std::vector<float>(expected.size(), kPadding), padding);

  gather_host_rows(from.data(), row_floats, rows.data(), rows.size(), to.data(), nullptr);

  EXPECT_EQ(bit_differences(expected, to.values()), "")
      << row_count << " rows of " << row_floats << " floats, padding " << padding;
}

TEST(CudaArrays, AreGatheredFromTheHostByRows) {
  for (const std::size_t row_floats : {1, 3, 4, 60, 784, 1023}) {
    for (const std::size_t padding : {0, 1}) expect_gathered(row_floats, 13, padding);
  }
}

// More elements than all threads of the grid load at once, and not a multiple of that.
TEST(CudaArrays, AreGatheredFromTheHostByThreadsThatGoRoundAgain) {
  expect_gathered(784, 401, 0);
  expect_gathered(784, 101, 1);
}

TEST(CudaArrays, AreLeftAloneWhereNoRowsAreGathered) {
  expect_gathered(784, 0, 0);
}

}  // namespace
}  // namespace holdfast::compute
