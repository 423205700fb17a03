#include "holdfast/core/row_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/tensor_rows.h"
#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const RowLayout kMixed(
    {{"pixels", {3}, DType::u8}, {"id", {}, DType::i64}, {"weight", {2}, DType::f32}, {"is_new", {}, DType::boolean}});

TEST(RowLayout, PlacesArraysAtWordsThatFitTheirElements) {
  EXPECT_EQ(kMixed.first_word(0), 0U);
  EXPECT_EQ(kMixed.first_word(1), 2U);
  EXPECT_EQ(kMixed.first_word(2), 4U);
  EXPECT_EQ(kMixed.first_word(3), 6U);
  EXPECT_EQ(kMixed.words(), 8U);
  EXPECT_FALSE(kMixed.is_plain());
}

TEST(RowLayout, IsPlainForOneArrayOfFloats) {
  const RowLayout plain({{"x", {2, 3}}});

  EXPECT_TRUE(plain.is_plain());
  EXPECT_EQ(plain.words(), 6U);
  EXPECT_FALSE(RowLayout({{"x", {4}, DType::i32}}).is_plain());
}

TEST(RowLayout, RefusesTypesAndNamesThatSamplesCannotHave) {
  EXPECT_THAT(sentence_thrown_by([] { RowLayout({{"x", {2}, DType::f64}}); }), HasSubstr("\"x\" of f64 [2]"));
  EXPECT_THAT(sentence_thrown_by([] { RowLayout({{"x", {2}}, {"x", {3}}}); }), HasSubstr("two arrays"));
  EXPECT_THAT(sentence_thrown_by([] { kMixed.index_of("ids"); }), HasSubstr("\"pixels\", \"id\", \"weight\""));
}

TEST(ArrayRow, ReadsAndWritesElementsOfEachType) {
  std::vector<float> words(kMixed.words());
  const ArrayRow row(kMixed, words);

  row.elements<std::uint8_t>("pixels")[2] = 255;
  row.elements<std::int64_t>(1)[0] = -5'000'000'000;
  row.elements<float>("weight")[1] = 0.5F;
  row.elements<bool>("is_new")[0] = true;

  EXPECT_THAT(row.elements<std::uint8_t>(0), ElementsAre(0, 0, 255));
  EXPECT_THAT(row.elements<std::int64_t>("id"), ElementsAre(-5'000'000'000));
  EXPECT_EQ(words[5], 0.5F);
  EXPECT_THAT(row.elements<bool>(3), ElementsAre(true));
}

TEST(ArrayRow, RefusesAnotherTypeThanThatOfTheArray) {
  std::vector<float> words(kMixed.words());
  const ArrayRow row(kMixed, words);

  EXPECT_THAT(sentence_thrown_by([&] { row.elements<float>(0); }), HasSubstr("\"pixels\" of u8 [3]"));
  EXPECT_THAT(sentence_thrown_by([&] { row.elements<float>(4); }), HasSubstr("there is no array 4"));
}

TEST(ReadRow, ClearsWordsThatBelongToNoElement) {
  const RowLayout layout({{"a", {3}, DType::u8}, {"b", {}, DType::u16}});
  const Tensor a(Shape{2, 3}, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
  const Tensor b(Shape{2}, std::vector<std::uint16_t>{7, 8});
  const std::vector<const Tensor*> tensors = {&a, &b};
  std::vector<float> dirty(layout.words(), 1e30F);
  std::vector<float> clean(layout.words());

  read_row(layout, tensors, 1, dirty);
  read_row(layout, tensors, 1, clean);

  EXPECT_THAT(ArrayRow(layout, dirty).elements<std::uint8_t>(0), ElementsAre(4, 5, 6));
  EXPECT_THAT(ArrayRow(layout, dirty).elements<std::uint16_t>(1), ElementsAre(8));
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(dirty)), std::as_bytes(std::span(clean))));
}

}  // namespace
}  // namespace holdfast
