#include "holdfast/core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(Tensor, BeginsWithZeros) {
  const Tensor tensor{Shape{2, 3}};

  EXPECT_EQ(tensor.values().size(), 6U);
  EXPECT_THAT(tensor.values(), Each(0.0F));
}

TEST(Tensor, IsEmptyByDefault) {
  const Tensor tensor;

  EXPECT_EQ(tensor.shape(), Shape{0});
  EXPECT_TRUE(tensor.values().empty());
}

TEST(Tensor, RefusesValuesThatDoNotFillItsShape) {
  try {
    const Tensor tensor(Shape{2, 3}, {1, 2, 3, 4, 5});
    FAIL() << "made a tensor of " << tensor.values().size() << " values";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "a tensor of shape [2, 3] holds 6 values, not 5");
  }
}

TEST(Tensor, ShowsOneSampleInPlace) {
  Tensor tensor(Shape{3, 2}, {1, 2, 3, 4, 5, 6});

  tensor.sample(1)[0] = 30;

  EXPECT_THAT(tensor.values(), ElementsAre(1, 2, 30, 4, 5, 6));
  EXPECT_THAT(std::as_const(tensor).sample(2), ElementsAre(5, 6));
}

TEST(Tensor, HasSamplesOfOneElementAlongASingleAxis) {
  const Tensor tensor(Shape{3}, {7, 8, 9});

  EXPECT_THAT(tensor.sample(2), ElementsAre(9));
}

// A view of a temporary showed memory that was already freed.
TEST(Tensor, GivesTheElementsOfATemporaryByValue) {
  const auto predict = [] { return Tensor(Shape{2, 2}, {1, 2, 3, 4}); };

  std::vector<float> looped;
  for (const float value : predict().values()) looped.push_back(value);
  const auto values = predict().values();
  const auto sample = predict().sample(1);

  EXPECT_THAT(looped, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE((std::is_same_v<decltype(values), const std::vector<float>>));
  EXPECT_TRUE((std::is_same_v<decltype(sample), const std::vector<float>>));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(sample, ElementsAre(3, 4));
}

TEST(Tensor, CopiesItsElements) {
  const Tensor original(Shape{2}, {1, 2});

  Tensor copy = original;
  copy.values()[0] = 5;

  EXPECT_THAT(original.values(), ElementsAre(1, 2));
}

TEST(Tensor, HoldsElementsOfOtherTypes) {
  Tensor ids(Shape{2, 2}, std::vector<std::int32_t>{1, -2, 3, 4});
  const Tensor flags(Shape{3}, std::vector<bool>{true, false, true});

  ids.elements<std::int32_t>()[0] = 7;

  EXPECT_EQ(ids.dtype(), DType::i32);
  EXPECT_THAT(std::as_const(ids).elements<std::int32_t>(), ElementsAre(7, -2, 3, 4));
  EXPECT_THAT(flags.elements<bool>(), ElementsAre(true, false, true));
  EXPECT_EQ(flags.bytes().size(), 3U);
  EXPECT_EQ(Tensor(Shape{2}, DType::bf16).bytes().size(), 4U);
}

TEST(Tensor, RefusesToReadElementsAsAnotherType) {
  const Tensor ids(Shape{2}, std::vector<std::int32_t>{1, 2});

  EXPECT_THROW(static_cast<void>(ids.values()), Error);
  EXPECT_THROW(static_cast<void>(ids.elements<float>()), Error);
  EXPECT_THROW(Tensor(Shape{2}, DType::f64), Error);
  EXPECT_THROW(Tensor(Shape{3}, std::vector<std::int32_t>{1}), Error);
}

TEST(TensorDeathTest, AssertsThatASampleExists) {
  const Tensor tensor{Shape{3, 2}};

  EXPECT_DEATH(static_cast<void>(tensor.sample(3)), "index < shape_");
  EXPECT_DEATH(static_cast<void>(tensor.sample(-1)), "index >= 0");
  EXPECT_DEATH(static_cast<void>(Tensor(Shape{}).sample(0)), "rank");
}

}  // namespace
}  // namespace holdfast
