#include "keras_files/keras_adafactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::IsEmpty;
using Extents = std::vector<std::uint64_t>;

NamedArray slot_of(const std::vector<float>& values, Extents shape) {
  NamedArray array{.name = "slot", .dtype = DType::f32, .shape = std::move(shape), .bytes = {}};
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::vector<float> values_of(const NamedArray& array) {
  std::vector<float> values(array.bytes.size() / sizeof(float));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

// Two matrices of two rows and three columns.
const Extents kParameter = {2, 2, 3};
const NamedArray kRows = slot_of({1, 1, 1, 3, 3, 3, 5, 5, 5, 7, 7, 7}, kParameter);
const NamedArray kColumns = slot_of({1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, kParameter);

TEST(KerasAdafactor, HasFactorsThatLackAnAxis) {
  EXPECT_THAT(keras_slot_shape(SlotKind::whole, kParameter), ElementsAre(2, 2, 3));
  EXPECT_THAT(keras_slot_shape(SlotKind::row_factor, kParameter), ElementsAre(2, 2));
  EXPECT_THAT(keras_slot_shape(SlotKind::column_factor, kParameter), ElementsAre(2, 3));
  EXPECT_THAT(keras_slot_shape(SlotKind::product_of_factors, kParameter), ElementsAre(2, 2, 3));
}

TEST(KerasAdafactor, HasScalarsForShortArrays) {
  const Extents bias = {3};

  EXPECT_THAT(keras_slot_shape(SlotKind::row_factor, bias), IsEmpty());
  EXPECT_THAT(keras_slot_shape(SlotKind::column_factor, Extents{}), IsEmpty());
  EXPECT_THAT(keras_slot_shape(SlotKind::product_of_factors, bias), ElementsAre(3));
}

TEST(KerasAdafactor, GivesKerasEachFactorOnce) {
  const NamedArray rows = keras_adafactor_slot(SlotKind::row_factor, kRows, kColumns);
  const NamedArray columns = keras_adafactor_slot(SlotKind::column_factor, kRows, kColumns);

  EXPECT_THAT(rows.shape, ElementsAre(2, 2));
  EXPECT_THAT(values_of(rows), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(columns.shape, ElementsAre(2, 3));
  EXPECT_THAT(values_of(columns), ElementsAre(1, 2, 3, 4, 5, 6));
}

// r c / mean of r, with means of 2 and 6.
TEST(KerasAdafactor, GivesKerasTheProductOfFactors) {
  const NamedArray product = keras_adafactor_slot(SlotKind::product_of_factors, kRows, kColumns);

  EXPECT_EQ(product.shape, kParameter);
  EXPECT_THAT(values_of(product), ElementsAre(0.5F, 1, 1.5F, 1.5F, 3, 4.5F, FloatEq(20 / 6.0F), FloatEq(25 / 6.0F), 5,
                                              FloatEq(28 / 6.0F), FloatEq(35 / 6.0F), 7));
}

TEST(KerasAdafactor, GivesKerasZerosBeforeTheFirstStep) {
  const NamedArray zeros = slot_of({0, 0, 0, 0}, {2, 2});

  EXPECT_THAT(values_of(keras_adafactor_slot(SlotKind::product_of_factors, zeros, zeros)), ElementsAre(0, 0, 0, 0));
}

TEST(KerasAdafactor, KeepsTheVelocitiesOfShortArrays) {
  const NamedArray velocities = slot_of({1, 2}, {2});
  const NamedArray unused = slot_of({0, 0}, {2});

  EXPECT_EQ(keras_adafactor_slot(SlotKind::product_of_factors, velocities, unused).bytes, velocities.bytes);
  const NamedArray scalar = keras_adafactor_slot(SlotKind::row_factor, velocities, unused);
  EXPECT_THAT(scalar.shape, IsEmpty());
  EXPECT_EQ(scalar.dtype, DType::i32);
  EXPECT_EQ(scalar.bytes, std::vector<std::byte>(4));
  EXPECT_EQ(savepoint_adafactor_slot(SlotKind::product_of_factors, velocities, Extents{2})->bytes, velocities.bytes);
  EXPECT_FALSE(savepoint_adafactor_slot(SlotKind::row_factor, scalar, Extents{2}));
}

TEST(KerasAdafactor, RepeatsFactorsInASavepoint) {
  for (const SlotKind kind : {SlotKind::row_factor, SlotKind::column_factor}) {
    const NamedArray& expected = kind == SlotKind::row_factor ? kRows : kColumns;

    const auto found = savepoint_adafactor_slot(kind, keras_adafactor_slot(kind, kRows, kColumns), kParameter);

    ASSERT_TRUE(found);
    EXPECT_EQ(found->shape, kParameter);
    EXPECT_EQ(found->bytes, expected.bytes);
  }
  EXPECT_FALSE(savepoint_adafactor_slot(SlotKind::product_of_factors, kRows, kParameter));
}

}  // namespace
}  // namespace holdfast::format
