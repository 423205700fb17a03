#include "data/lengths/padded_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/data/source.h"
#include "support/thrown.h"
#include "unit/data/support/sentences.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using IdLists = std::vector<std::vector<std::int32_t>>;

std::vector<std::int32_t> padded_ids(const Dataset& data, std::int64_t position) {
  return LoadedArrays(data, position).input<std::int32_t>("ids");
}

TEST(PaddedStage, GivesAllSamplesOneLength) {
  const Dataset data = sentences(7).padded(8, {.value = -1});

  ASSERT_EQ(data.inputs().size(), 1U);
  EXPECT_EQ(data.inputs()[0], (ArraySpec{"ids", {8}, DType::i32}));
  EXPECT_THAT(padded_ids(data, 2), ElementsAre(201, 202, 203, -1, -1, -1, -1, -1));
  EXPECT_THAT(padded_ids(data, 0), ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(LoadedArrays(data, 2).target<float>("kind"), ElementsAre(2));
}

TEST(PaddedStage, PutsPaddingAtTheEndThatIsAskedFor) {
  EXPECT_THAT(padded_ids(sentences(7).padded(6, {.side = PaddingSide::begin}), 2), ElementsAre(0, 0, 0, 201, 202, 203));
}

TEST(PaddedStage, TruncatesOnlyWhereItMay) {
  const auto truncated = [](Truncation truncation) { return sentences(7).padded(3, {.truncation = truncation}); };

  EXPECT_THAT(padded_ids(truncated(Truncation::keep_begin), 1), ElementsAre(101, 102, 103));
  EXPECT_THAT(padded_ids(truncated(Truncation::keep_end), 1), ElementsAre(103, 104, 105));
  EXPECT_THAT(padded_ids(truncated(Truncation::refuse), 2), ElementsAre(201, 202, 203));
  EXPECT_THAT(sentence_thrown_by([&] { padded_ids(truncated(Truncation::refuse), 1); }),
              HasSubstr("sample 1 has 5 positions, more than the 3 that padded() was given"));
}

TEST(PaddedStage, TellsTheModelWhatIsPadding) {
  const auto kept = [](LengthInput keep) {
    return sentences(7).padded(4, {.side = PaddingSide::begin, .truncation = Truncation::keep_end, .keep = keep});
  };

  const Dataset masked = kept(LengthInput::mask);
  const Dataset counted = kept(LengthInput::length);

  EXPECT_EQ(masked.inputs()[1], (ArraySpec{"mask", {4}, DType::f32}));
  EXPECT_THAT(LoadedArrays(masked, 2).input<float>("mask"), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(LoadedArrays(masked, 0).input<float>("mask"), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(counted.inputs()[1], (ArraySpec{"length", {}, DType::i32}));
  EXPECT_THAT(LoadedArrays(counted, 2).input<std::int32_t>("length"), ElementsAre(3));
  EXPECT_THAT(LoadedArrays(counted, 1).input<std::int32_t>("length"), ElementsAre(4));
}

TEST(PaddedStage, MovesTargetsAndWeightsOfPositionsWithTheInputs) {
  const Sequences ids(IdLists{{7}, {8, 9, 10}});
  const Sequences tags(std::vector<std::vector<float>>{{1}, {2, 3, 4}});
  const Dataset data = from_sequences({{"ids", ids}}, {{"tags", tags}}, Tensor(Shape{2}, {0.5F, 3}))
                           .padded(2, {.side = PaddingSide::begin, .truncation = Truncation::keep_end});

  EXPECT_EQ(data.targets()[0], (ArraySpec{"tags", {2}, DType::f32}));
  EXPECT_THAT(LoadedArrays(data, 0).target<float>("tags"), ElementsAre(0, 1));
  EXPECT_THAT(LoadedArrays(data, 0).target<float>("sample_weight"), ElementsAre(0, 0.5F));
  EXPECT_THAT(LoadedArrays(data, 1).target<float>("tags"), ElementsAre(3, 4));
  EXPECT_THAT(LoadedArrays(data, 1).target<float>("sample_weight"), ElementsAre(3, 3));
  std::vector<float> targets(data.target_layout().words());
  data.last_stage()->load_targets(1, 0, 1, targets);
  EXPECT_THAT((ArrayRow(data.target_layout(), targets).elements<float>("tags")), ElementsAre(3, 4));
}

// A target of a sample may have as many elements as there are positions.
TEST(PaddedStage, LeavesTargetsOfSamplesAsTheyAre) {
  const Dataset data = from_sequences({{"ids", Sequences(IdLists{{7}, {8, 9}})}},
                                      {{"kind", Tensor(Shape{2, 2}, {1, 0, 0, 1})}}, Tensor(Shape{2}, {1, 2}))
                           .padded(5);

  EXPECT_EQ(data.targets()[0], (ArraySpec{"kind", {2}, DType::f32}));
  EXPECT_THAT(LoadedArrays(data, 1).target<float>("kind"), ElementsAre(0, 1));
  EXPECT_THAT(LoadedArrays(data, 1).target<float>("sample_weight"), ElementsAre(2));
}

// What a program left in the room after the last element is padding as well.
TEST(PaddedStage, TakesSamplesOfAProgramsOwn) {
  const auto write = [](std::int64_t sample, const SampleArrays& into) {
    std::ranges::fill(into.inputs.elements<float>("points"), 9.0F);
    into.inputs.elements<std::int64_t>("length")[0] = sample;
  };
  const Dataset data =
      from_source(
          {.size = 4, .inputs = {{"length", {}, DType::i64}, {"points", {2, 2}}}, .targets = {}, .content = "nines"},
          write)
          .padded(3);

  EXPECT_EQ(data.inputs()[0], (ArraySpec{"points", {3, 2}, DType::f32}));
  EXPECT_THAT(LoadedArrays(data, 1).input<float>("points"), ElementsAre(9, 9, 0, 0, 0, 0));
  EXPECT_THAT(sentence_thrown_by([&] { LoadedArrays(data, 3); }),
              HasSubstr("sample 3 has the length 3, but its arrays have room for 0 to 2 positions"));
}

TEST(PaddedStage, JoinsWithAnotherLengthByZip) {
  const Dataset both =
      Dataset::zip({sentences(7).padded(6).map({{"first", {6}, DType::i32}},
                                               [](const ArrayRow& from, const ArrayRow& to, Random&) {
                                                 std::ranges::copy(from.bytes(0), to.bytes(0).begin());
                                               }),
                    from_sequences({{"second", sentence_ids(7)}}, {{"tags", sentence_ids(7)}}).padded(9)});

  EXPECT_EQ(both.inputs()[1], (ArraySpec{"second", {9}, DType::i32}));
  EXPECT_TRUE(both.has_sample_weights());
}

TEST(PaddedStage, IsSameInAllEpochsSoThatItMayBeCached) {
  const Dataset data = sentences(7).padded(6);

  EXPECT_EQ(padded_ids(data.cache(), 4), padded_ids(data, 4));
  EXPECT_EQ(padded_ids(data.cache(), 4), padded_ids(data, 4));
}

TEST(PaddedStage, IsDescribedByItsOptions) {
  const std::string described = sentences(7).padded(6).description();

  EXPECT_THAT(described, HasSubstr(R"({"kind":"padded","length":6,"value":0.0,"side":"end","truncation":"refuse",)"
                                   R"("keep":"none"})"));
  EXPECT_NE(sentences(7).padded(6, {.truncation = Truncation::keep_end}).description(), described);
  EXPECT_NE(sentences(7).padded(6, {.value = 1}).description(), described);
}

TEST(PaddedStage, RefusesWrongOptions) {
  const auto expect_refused = [](const std::function<void()>& make, const std::string& reason) {
    EXPECT_EQ(code_thrown_by(make), ErrorCode::invalid_argument);
    EXPECT_THAT(sentence_thrown_by(make), HasSubstr(reason));
  };
  const Dataset plain = from_tensors(Tensor(Shape{2, 3}), Tensor(Shape{2}));
  const Dataset uneven = from_tensors({{"ids", Tensor(Shape{2, 3})},
                                       {"length", Tensor(Shape{2}, std::vector<std::int32_t>{1, 2})},
                                       {"age", Tensor(Shape{2})}},
                                      {{"kind", Tensor(Shape{2})}});

  const Dataset weighted =
      from_tensors({{"ids", Tensor(Shape{2, 2})}, {"length", Tensor(Shape{2}, std::vector<std::int32_t>{1, 2})}},
                   {{"kind", Tensor(Shape{2})}, {"age", Tensor(Shape{2})}},
                   std::vector<NamedTensor>{{"kind", Tensor(Shape{2})}, {"age", Tensor(Shape{2})}});

  expect_refused([&] { weighted.padded(4); }, "each target has weights of its own");
  expect_refused([&] { plain.padded(4); }, "reads how long a sample is from an input \"length\"");
  expect_refused([&] { uneven.padded(4); }, "that of \"age\" of f32 [] is another one");
  expect_refused([] { sentences(3).padded(0); }, "samples get a length of 1 or more, not 0");
  expect_refused([] { sentences(3).padded(4, {.value = 0.5}); }, "cannot hold the value 0.5");
  expect_refused([] { sentences(3).batch(2).padded(4); }, "padded() stands after batch()");
}

}  // namespace
}  // namespace holdfast
