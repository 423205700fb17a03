// The host runs these kernels (emulation/grid.h).

#include "compute/cuda/products/bfloat16_arrays.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "gpu/support/gpu_test.h"

namespace holdfast::compute {
namespace {

constexpr Bfloat16 kUntouched = 0x1234;

// An array with the alignment of a workspace, followed by a group that must not change.
class Copy {
 public:
  explicit Copy(std::size_t elements) : elements_(elements), floats_(host_memory().allocate(elements / 2 + 8)) {
    std::fill_n(data(), elements_ + 8, kUntouched);
  }
  Bfloat16* data() const { return reinterpret_cast<Bfloat16*>(floats_.get()); }
  bool is_rest_untouched() const {
    return std::all_of(data() + elements_, data() + elements_ + 8, [](Bfloat16 bits) { return bits == kUntouched; });
  }

 private:
  std::size_t elements_;
  std::shared_ptr<float[]> floats_;
};

TEST(Bfloat16Arrays, HaveEachElementRoundedAndZerosAfterRows) {
  for (const Bfloat16Matrix& matrix : std::vector<Bfloat16Matrix>{
           {1, 1}, {1, 7}, {1, 8}, {1, 4099}, {3, 5}, {4, 8}, {5, 12}, {7, 300}, {33, 1}, {300, 10}, {16, 64}}) {
    for (const std::size_t padding : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{} x {} after {}", matrix.rows, matrix.columns, padding));
      const auto elements = static_cast<std::size_t>(matrix.rows * matrix.columns);
      const std::vector<float> values = random_values(5, elements);
      const DeviceArray from(host_memory(), values, padding);
      const Copy to(static_cast<std::size_t>(matrix.rows * matrix.row_stride()));

      round_to_bfloat16(matrix, from.data(), to.data(), nullptr);

      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        for (std::int64_t column = 0; column < matrix.row_stride(); ++column) {
          const auto index = static_cast<std::size_t>(row * matrix.columns + column);
          const Bfloat16 expected =
              column < matrix.columns ? round_to_bfloat16(std::bit_cast<std::uint32_t>(values[index])) : Bfloat16{0};
          ASSERT_EQ(to.data()[row * matrix.row_stride() + column], expected) << row << ", " << column;
        }
      }
      EXPECT_TRUE(to.is_rest_untouched());
    }
  }
}

TEST(Bfloat16Arrays, AreWidenedWithoutChange) {
  for (const std::size_t count : {1, 7, 8, 9, 2048, 4099}) {
    for (const std::size_t padding : {0, 1, 2}) {
      const std::vector<float> values = random_values(6, count);
      const Bfloat16Matrix array = {.rows = 1, .columns = static_cast<std::int64_t>(count)};
      const Copy rounded(static_cast<std::size_t>(array.row_stride()));
      round_to_bfloat16(array, values.data(), rounded.data(), nullptr);
      const DeviceArray to(host_memory(), std::vector<float>(count + 8, 77), padding);

      widen_bfloat16(array.columns, rounded.data(), to.data(), nullptr);

      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(to.data()[i]), widen_bfloat16(rounded.data()[i]))
            << i << " of " << count;
      }
      for (std::size_t i = count; i < count + 8; ++i) EXPECT_EQ(to.data()[i], 77);
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
