#include "holdfast/data/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/thrown.h"
#include "unit/data/support/sentences.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using IdLists = std::vector<std::vector<std::int32_t>>;
using NumberLists = std::vector<std::vector<float>>;

TEST(FromSequences, HasRoomForTheLongestSample) {
  const Dataset data = sentences(7);

  ASSERT_EQ(data.size(), 7);
  ASSERT_EQ(data.inputs().size(), 2U);
  EXPECT_EQ(data.inputs()[0], (ArraySpec{"ids", {6}, DType::i32}));
  EXPECT_EQ(data.inputs()[1], (ArraySpec{"length", {}, DType::i32}));
  LoadedArrays sample(data, 2);
  EXPECT_THAT(sample.input<std::int32_t>("ids"), ElementsAre(201, 202, 203, 0, 0, 0));
  EXPECT_THAT(sample.input<std::int32_t>("length"), ElementsAre(3));
  EXPECT_THAT(sample.target<float>("kind"), ElementsAre(2));
  EXPECT_THAT(LoadedArrays(data, 0).input<std::int32_t>("length"), ElementsAre(0));
}

TEST(FromSequences, LeavesNothingOfTheSampleThatWasThereBefore) {
  const Dataset data = sentences(7);
  std::vector<float> inputs(data.input_layout().words(), 7.0F);
  std::vector<float> targets(data.target_layout().words(), 7.0F);

  data.load(0, 0, 6, {.features = inputs, .targets = targets});

  EXPECT_THAT((ArrayRow(data.input_layout(), inputs).elements<std::int32_t>("ids")), ElementsAre(601, 602, 0, 0, 0, 0));
}

TEST(FromSequences, TakesSeveralInputsOfElementsOfAnyShape) {
  const Sequences points(Tensor(Shape{3, 2}, {1, 2, 3, 4, 5, 6}), {1, 2});
  const Dataset data = from_sequences({{"ids", Sequences(IdLists{{7}, {8, 9}})}, {"points", points}},
                                      {{"kind", Tensor(Shape{2, 1}, {0, 1})}}, Tensor(Shape{2}, {0.5F, 2}));

  EXPECT_EQ(data.inputs()[1], (ArraySpec{"points", {2, 2}, DType::f32}));
  EXPECT_TRUE(data.has_sample_weights());
  EXPECT_THAT(LoadedArrays(data, 0).input<float>("points"), ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(LoadedArrays(data, 1).input<float>("points"), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(LoadedArrays(data, 1).target<float>("sample_weight"), ElementsAre(2));
}

TEST(FromSequences, MasksThePaddingOfTargetsOfPositions) {
  const Sequences ids(IdLists{{7}, {8, 9}, {}});
  const Sequences tags(NumberLists{{1}, {2, 3}, {}});

  const Dataset plain = from_sequences({{"ids", ids}}, {{"tags", tags}});
  const Dataset weighted = from_sequences({{"ids", ids}}, {{"tags", tags}}, Tensor(Shape{3}, {0.5F, 2, 3}));

  ASSERT_TRUE(plain.has_sample_weights());
  EXPECT_EQ(plain.targets()[0], (ArraySpec{"tags", {2}, DType::f32}));
  EXPECT_THAT(LoadedArrays(plain, 0).target<float>("tags"), ElementsAre(1, 0));
  EXPECT_THAT(LoadedArrays(plain, 0).target<float>("sample_weight"), ElementsAre(1, 0));
  EXPECT_THAT(LoadedArrays(weighted, 0).target<float>("sample_weight"), ElementsAre(0.5F, 0));
  EXPECT_THAT(LoadedArrays(weighted, 1).target<float>("sample_weight"), ElementsAre(2, 2));
  EXPECT_THAT(LoadedArrays(weighted, 2).target<float>("sample_weight"), ElementsAre(0, 0));
}

TEST(FromSequences, IsDescribedByElementsAndLengths) {
  const auto described = [](const Sequences& ids) {
    return from_sequences({{"ids", ids}}, {{"kind", Tensor(Shape{2})}}).description();
  };

  EXPECT_EQ(described(Sequences(IdLists{{1, 2}, {3}})),
            described(Sequences(Tensor(Shape{3}, std::vector{1, 2, 3}), {2, 1})));
  EXPECT_NE(described(Sequences(IdLists{{1, 2}, {3}})), described(Sequences(IdLists{{1}, {2, 3}})));
  EXPECT_NE(described(Sequences(IdLists{{1, 2}, {3}})), described(Sequences(IdLists{{1, 2}, {4}})));
}

TEST(Sequences, JoinTensorsOfOtherLengths) {
  const Sequences joined({Tensor(Shape{1, 2}, {1, 2}), Tensor(Shape{0, 2}), Tensor(Shape{2, 2}, {3, 4, 5, 6})});

  EXPECT_EQ(joined.elements().shape(), (Shape{3, 2}));
  EXPECT_THAT(joined.elements().values(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(joined.lengths(), ElementsAre(1, 0, 2));
  EXPECT_EQ(joined.longest(), 2);
}

TEST(Sequences, RefuseWrongLengthsAndArrays) {
  const auto expect_refused = [](const std::function<void()>& make, const std::string& reason) {
    EXPECT_EQ(code_thrown_by(make), ErrorCode::invalid_argument);
    EXPECT_THAT(sentence_thrown_by(make), HasSubstr(reason));
  };
  const Sequences ids(IdLists{{7}, {8, 9}});
  const Tensor kinds(Shape{2});

  expect_refused([] { Sequences(Tensor(Shape{3}), {1, 1}); }, "the lengths of 2 samples add up to 2");
  expect_refused([] { Sequences(Tensor(Shape{1}), {2, -1}); }, "sample 1 cannot have the length -1");
  expect_refused([] { Sequences(std::vector<Tensor>{}); }, "there are no samples");
  expect_refused([] { Sequences({Tensor(Shape{1, 2}), Tensor(Shape{1, 3})}); }, "sample 1 is of f32 [1, 3]");
  expect_refused([&] { from_sequences({}, {{"kind", kinds}}); }, "needs one input and one sample");
  expect_refused(
      [&] {
        from_sequences({{"ids", Sequences(IdLists{{}, {}})}}, {{"kind", kinds}});
      },
      "all samples are empty");
  expect_refused([&] { from_sequences({{"ids", ids}}, {{"kind", Tensor(Shape{3})}}); }, "there are 2 samples");
  expect_refused(
      [&] {
        from_sequences({{"ids", ids}}, {{"tags", Sequences(NumberLists{{1, 2}, {3}})}});
      },
      "target \"tags\" has samples of other lengths");
  expect_refused([&] { from_sequences({{"length", ids}}, {{"kind", kinds}}); }, "length");
  expect_refused(
      [&] {
        from_sequences({{"ids", ids}}, {{"kind", kinds}}, Tensor(Shape{2}, {1, -1}));
      },
      "sample weight 1 is -1");
  expect_refused(
      [&] {
        from_sequences({{"ids", ids}}, {{"tags", ids}}, Tensor(Shape{2, 2}));
      },
      "sample weights are [samples] here");
}

}  // namespace
}  // namespace holdfast
