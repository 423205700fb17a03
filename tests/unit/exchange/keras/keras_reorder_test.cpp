// Rows after a flattened image, in both orders of channels, and the widening of 16-bit floats.

#include "keras/keras_reorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::layer;
using ::testing::Pair;
using testing::sequential;
using ::testing::UnorderedElementsAre;

std::vector<float> values(const NamedArray& array) {
  std::vector<float> result(array.bytes.size() / sizeof(float));
  std::memcpy(result.data(), array.bytes.data(), array.bytes.size());
  return result;
}

template <typename Number>
NamedArray array(DType dtype, std::vector<std::uint64_t> shape, const std::vector<Number>& numbers) {
  NamedArray result{"a", dtype, std::move(shape), std::vector<std::byte>(numbers.size() * sizeof(Number))};
  std::memcpy(result.bytes.data(), numbers.data(), result.bytes.size());
  return result;
}

TEST(KerasReorder, PutsChannelsLast) {
  // Two channels of two rows and three columns. Each value says where it belongs: 100 channel + 10 row + column.
  NamedArray kernel = array<float>(DType::f32, {12, 1}, {0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112});

  ASSERT_TRUE(reorder_rows(kernel, {2, 3, 2}));

  EXPECT_THAT(values(kernel), ElementsAre(0, 100, 1, 101, 2, 102, 10, 110, 11, 111, 12, 112));
}

TEST(KerasReorder, RefusesImagesOfAnotherSize) {
  NamedArray kernel = testing::floats("a", {12, 1});
  const std::vector<std::byte> before = kernel.bytes;
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

  EXPECT_FALSE(reorder_rows(kernel, {2, 3, 3}));
  EXPECT_FALSE(reorder_rows(kernel, {0, 0, 0}));
  EXPECT_FALSE(reorder_rows(kernel, {kHuge, 2, 12}));
  NamedArray empty{"a", DType::f32, {kHuge, 0}, {}};
  EXPECT_FALSE(reorder_rows(empty, {kHuge, 1, 1}));
  NamedArray scalar{"a", DType::f32, {}, std::vector<std::byte>(4)};
  EXPECT_FALSE(reorder_rows(scalar, {1, 1, 1}));
  EXPECT_EQ(kernel.bytes, before);
}

TEST(KerasReorder, FindsTheVariablesThatSeeAFlattenedImage) {
  const Json first = {{"data_format", "channels_first"}};
  const KerasModel model(
      sequential({layer("Conv2D", "c", first), layer("Flatten", "f"),
                  layer("BatchNormalization", "n", {{"scale", false}}), layer("Dense", "d"), layer("Dense", "e")}),
      "the model");

  EXPECT_THAT(variables_after_flatten(model), UnorderedElementsAre(Pair("n/beta", 0), Pair("n/moving_mean", 0),
                                                                   Pair("n/moving_variance", 0), Pair("d/kernel", 0)));
}

TEST(KerasReorder, LeavesModelsAloneThatReorderTheirImages) {
  const Json first = {{"data_format", "channels_first"}};
  const KerasModel turned(sequential({layer("Conv2D", "c", first), layer("Flatten", "f", first), layer("Dense", "d")}),
                          "the model");
  const KerasModel last(sequential({layer("Conv2D", "c", {{"data_format", "channels_last"}}), layer("Flatten", "f"),
                                    layer("Dense", "d")}),
                        "the model");

  EXPECT_TRUE(variables_after_flatten(turned).empty());
  EXPECT_TRUE(variables_after_flatten(last).empty());
}

TEST(KerasReorder, WidensEveryHalf) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  NamedArray wide = array(DType::f16, {65536}, halves);

  ASSERT_TRUE(widen_to_f32(wide));

  EXPECT_EQ(wide.dtype, DType::f32);
  const std::vector<float> found = values(wide);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int exponent = static_cast<int>(i >> 10) & 31;
    const auto mantissa = static_cast<float>(i & 1023);
    const float magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    const float expected =
        std::copysign(exponent < 31 ? magnitude : std::numeric_limits<float>::infinity(), i < 32768 ? 1.0F : -1.0F);
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(found[i])) << i;
    } else {
      EXPECT_EQ(found[i], expected) << i;
      EXPECT_EQ(std::signbit(found[i]), i >= 32768) << i;
    }
  }
}

TEST(KerasReorder, WidensBfloatsByTheirBits) {
  NamedArray wide = array<std::uint16_t>(DType::bf16, {3}, {0x3F80, 0xC000, 0x7F80});

  ASSERT_TRUE(widen_to_f32(wide));

  EXPECT_THAT(values(wide), ElementsAre(1.0F, -2.0F, std::numeric_limits<float>::infinity()));
  NamedArray doubles = array<double>(DType::f64, {1}, {1.0});
  EXPECT_FALSE(widen_to_f32(doubles));
}

}  // namespace
}  // namespace holdfast::format
