#include "data/stages/joined_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/batches/shared_samples.h"
#include "holdfast/base/error.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Function>
void expect_refused_join(const Function& function, const std::string& reason) {
  try {
    function();
    ADD_FAILURE() << "nothing was wrong; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(Concatenate, GivesAllSamplesOfEachInTurn) {
  const Dataset data = Dataset::concatenate({numbers(3), numbers(5).skip(4), numbers(2)});

  EXPECT_EQ(data.size(), 6);
  EXPECT_THAT(first_features(data, 0), ElementsAre(0, 1, 2, 4, 0, 1));
}

TEST(Interleave, GivesOneSampleOfEachAndPassesOverThoseThatEnd) {
  const Dataset data = Dataset::interleave({numbers(4), numbers(12).skip(10), numbers(23).skip(20)});

  EXPECT_THAT(first_features(data, 0), ElementsAre(0, 10, 20, 1, 11, 21, 2, 22, 3));
}

TEST(Interleave, GivesOneDataSetBackAsItIs) {
  EXPECT_THAT(first_features(Dataset::interleave({numbers(3)}), 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(first_features(Dataset::concatenate({numbers(2).take(0), numbers(3)}), 0), ElementsAre(0, 1, 2));
}

TEST(Zip, PutsArraysSideBySide) {
  const Dataset data = Dataset::zip({numbers(4), numbers(14).skip(10)});

  EXPECT_EQ(data.size(), 4);
  EXPECT_EQ(data.inputs().size(), 2U);
  EXPECT_THAT(loaded(data, 0, 0, 2), ElementsAre(2, 2.5, 12, 12.5, -2, -12));
}

TEST(Zip, KeepsTypesAndWeights) {
  const Dataset ids =
      from_tensors({{"id", Tensor({2}, std::vector<std::int64_t>{7, -8})}}, {{"a", Tensor({2}, {1, 2})}});
  const Dataset weighted = from_tensors({{"flag", Tensor({2}, std::vector<std::uint8_t>{0, 1})}},
                                        {{"b", Tensor({2}, {3, 4})}}, Tensor({2}, {0.5F, 0.25F}));
  const Dataset data = Dataset::zip({ids, weighted});
  std::vector<float> inputs(data.input_layout().words());
  std::vector<float> targets(data.target_layout().words());
  data.load(0, 0, 1, {.features = inputs, .targets = targets});

  EXPECT_TRUE(data.has_sample_weights());
  EXPECT_THAT(ArrayRow(data.input_layout(), inputs).elements<std::int64_t>("id"), ElementsAre(-8));
  EXPECT_THAT(ArrayRow(data.input_layout(), inputs).elements<std::uint8_t>("flag"), ElementsAre(1));
  EXPECT_THAT(targets, ElementsAre(2, 4, 0.25));
}

TEST(JoinedStages, DrawBySeedsOfTheirOwn) {
  const Dataset noisy = numbers(50).map(add_noise, "noise");
  const Dataset data = Dataset::concatenate({noisy, noisy});

  EXPECT_NE(loaded(data, 3, 0, 0), loaded(data, 3, 0, 50));
  EXPECT_EQ(loaded(data, 3, 0, 50), loaded(Dataset::concatenate({noisy, noisy}), 3, 0, 50));
  EXPECT_NE(loaded(data, 3, 0, 50), loaded(data, 4, 0, 50));
  EXPECT_NE(loaded(data, 3, 0, 50), loaded(data, 3, 1, 50));
}

// As the header says. Another rule would change the bits of runs that exist.
TEST(JoinedStages, NestedJoinsDrawAlikeAtEqualSumsOfPositions) {
  const Dataset noisy = numbers(10).map(add_noise, "noise");
  const Dataset pair = Dataset::concatenate({noisy, noisy});
  const Dataset nested = Dataset::concatenate({pair, pair});
  const Dataset flat = Dataset::concatenate({noisy, noisy, noisy, noisy});

  EXPECT_EQ(loaded(nested, 3, 0, 10), loaded(nested, 3, 0, 20));
  EXPECT_EQ(loaded(nested, 3, 0, 10), loaded(flat, 3, 0, 10));
  EXPECT_NE(loaded(nested, 3, 0, 0), loaded(nested, 3, 0, 30));
  EXPECT_NE(loaded(flat, 3, 0, 10), loaded(flat, 3, 0, 20));
}

TEST(JoinedStages, AreDescribedByTheirParts) {
  const auto description = [](std::int64_t first, std::int64_t second) {
    return Dataset::concatenate({numbers(first), numbers(second).shuffle()}).description();
  };

  EXPECT_EQ(description(3, 4), description(3, 4));
  EXPECT_NE(description(3, 4), description(4, 3));
  EXPECT_NE(Dataset::interleave({numbers(3), numbers(3)}).description(),
            Dataset::concatenate({numbers(3), numbers(3)}).description());
  EXPECT_THAT(description(3, 4), HasSubstr(R"({"kind":"concatenate","parts":[[{"kind":"tensors")"));
}

TEST(JoinedStages, TellWhichSamplesOfASourceAreValidatedOn) {
  const Dataset data = numbers(20);
  const Dataset other = numbers(30);

  EXPECT_FALSE(shared_samples(Dataset::concatenate({data.take(10), other}).shuffle(), data.skip(10)));
  EXPECT_EQ(shared_samples(Dataset::concatenate({data.take(12), other}), data.skip(10)).value().shared, 2);
  EXPECT_EQ(shared_samples(data.skip(10), Dataset::interleave({other, data.take(12)})).value().shared, 2);
  EXPECT_FALSE(shared_samples(Dataset::interleave({data, other}).take(10), data.skip(5)));
  EXPECT_EQ(shared_samples(Dataset::interleave({data, other}).take(13), data.skip(5)).value().shared, 2);
  EXPECT_EQ(shared_samples(Dataset::zip({data, data}).take(4), data.skip(3)).value().shared, 1);
  EXPECT_TRUE(shared_samples(Dataset::concatenate({data, other}).shuffle().take(5), data.skip(15))
                  .value()
                  .are_mixed_by_shuffle);
}

TEST(JoinedStages, RefuseSplitsAfterAShuffleOfAPart) {
  expect_refused_join([] { Dataset::concatenate({numbers(4), numbers(4).shuffle()}).split(2); }, "after shuffle()");
}

TEST(JoinedStages, RefuseWhatDoesNotFit) {
  const Dataset other = from_tensors(Tensor({3, 1}), Tensor({3}));

  expect_refused_join([] { Dataset::concatenate({}); }, "concatenate(): needs at least one data set");
  expect_refused_join([] { Dataset::zip({}); }, "zip(): needs at least one data set");
  expect_refused_join(
      [&] {
        Dataset::concatenate({numbers(2), other});
      },
      "one has inputs f32 [2] and targets f32 [], and another one inputs f32 [1]");
  expect_refused_join([&] { Dataset::interleave({numbers(2), other}); }, "interleave(): samples of all data sets");
  expect_refused_join([] { Dataset::zip({numbers(2), numbers(3)}); }, "zip(): the data sets have 2 and 3 samples");
  const Dataset weighted = from_tensors({{"x", Tensor({2})}}, {{"y", Tensor({2})}}, Tensor({2}));
  expect_refused_join([&] { Dataset::zip({weighted, numbers(2)}); }, "only the last data set may have sample weights");
  expect_refused_join([&] { Dataset::zip({weighted, weighted}); }, "only the last data set may have sample weights");
  expect_refused_join([] { Dataset::zip({numbers(2).batch(1), numbers(2)}); }, "zip() stands after batch()");
  expect_refused_join([] { Dataset::concatenate({numbers(2)}).keep_on_device(); },
                      "a stage that joins or weighs samples");
}

// Both have an array of two weights for a sample. Those of targets passed for those of positions, by which padded()
// would have ordered them.
TEST(JoinedStages, RefuseWeightsOfOtherKinds) {
  const std::vector<NamedTensor> inputs = {{"x", Tensor({2})}};
  const std::vector<NamedTensor> targets = {{"a", Tensor({2, 2})}, {"b", Tensor({2, 2})}};
  const Dataset of_positions = from_tensors(inputs, targets, Tensor({2, 2}));
  const Dataset of_targets =
      from_tensors(inputs, targets, std::vector<NamedTensor>{{"a", Tensor({2})}, {"b", Tensor({2})}});
  const Dataset target_of_that_name = from_tensors(inputs, {targets[0], targets[1], {"sample_weight", Tensor({2, 2})}});

  EXPECT_EQ(of_positions.target_layout(), of_targets.target_layout());
  EXPECT_EQ(of_positions.target_layout(), target_of_that_name.target_layout());
  expect_refused_join([&] { Dataset::concatenate({of_positions, of_targets}); }, "f32 [2] (weights of each target)");
  expect_refused_join(
      [&] {
        Dataset::interleave({of_targets, of_positions});
      },
      "f32 [2] (weights of samples or positions)");
  expect_refused_join(
      [&] {
        Dataset::concatenate({target_of_that_name, of_positions});
      },
      "f32 [2] (weights of samples or positions)");
  EXPECT_EQ(Dataset::concatenate({of_targets, of_targets}).size(), 4);
}

}  // namespace
}  // namespace holdfast
