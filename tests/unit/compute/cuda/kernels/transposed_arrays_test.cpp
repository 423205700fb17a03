// The host runs these kernels (emulation/grid.h).

#include "compute/cuda/products/transposed_arrays.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "gpu/support/gpu_test.h"

namespace holdfast::compute {
namespace {

class TransposedArrays : public testing::TestWithParam<MatrixExtent> {
 protected:
  std::size_t elements() const { return static_cast<std::size_t>(GetParam().rows * GetParam().columns); }
  // The index in the matrix of the element at `index` of the transposed one.
  std::size_t origin(std::size_t index) const {
    const auto rows = static_cast<std::size_t>(GetParam().rows), columns = static_cast<std::size_t>(GetParam().columns);
    return index % rows * columns + index / rows;
  }
  // Followed by an element that must not change.
  template <class Element>
  std::vector<Element> room() const {
    return std::vector<Element>(elements() + 1, Element{77});
  }
};

std::uint16_t rounded(float value) {
  return round_to_bfloat16(std::bit_cast<std::uint32_t>(value));
}

TEST_P(TransposedArrays, HaveEachElementAtItsPlace) {
  const std::vector<float> from = random_values(5, elements());
  std::vector<float> to = room<float>();

  transpose(GetParam(), from.data(), to.data(), nullptr);

  for (std::size_t i = 0; i < elements(); ++i) ASSERT_EQ(to[i], from[origin(i)]) << i;
  EXPECT_EQ(to.back(), 77);
}

TEST_P(TransposedArrays, AreRoundedAndWidenedOnTheWay) {
  const std::vector<float> from = random_values(6, elements());
  std::vector<Bfloat16> to = room<Bfloat16>();
  std::vector<float> back = room<float>();

  transpose(GetParam(), from.data(), to.data(), nullptr);
  transpose({.rows = GetParam().columns, .columns = GetParam().rows}, to.data(), back.data(), nullptr);

  for (std::size_t i = 0; i < elements(); ++i) {
    ASSERT_EQ(to[i], rounded(from[origin(i)])) << i;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), widen_bfloat16(rounded(from[i]))) << i;
  }
  EXPECT_EQ(to.back(), Bfloat16{77});
  EXPECT_EQ(back.back(), 77);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TransposedArrays,
                         testing::Values(MatrixExtent{1, 1}, MatrixExtent{25, 6}, MatrixExtent{150, 16},
                                         MatrixExtent{1, 70}, MatrixExtent{70, 1}, MatrixExtent{32, 32},
                                         MatrixExtent{33, 64}, MatrixExtent{64, 31}, MatrixExtent{130, 97}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.rows) + "_" + std::to_string(instance.param.columns);
                         });

}  // namespace
}  // namespace holdfast::compute
