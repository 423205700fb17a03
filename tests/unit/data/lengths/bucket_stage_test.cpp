#include "data/lengths/bucket_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"
#include "unit/data/support/sentences.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The numbers of the samples (the targets) in the order of an epoch.
std::vector<int> sentence_order(const Dataset& data, std::int64_t epoch) {
  std::vector<int> order;
  for (std::int64_t position = 0; position < data.size(); ++position) {
    order.push_back(static_cast<int>(LoadedArrays(data, position, epoch).target<float>("kind")[0]));
  }
  return order;
}

std::vector<int> sorted_numbers(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

// The bounds are {1, 4}, and the sample is one of sentences().
int bucket_of(int sample) {
  const int length = sample * 5 % 7;
  return length <= 1 ? 0 : length <= 4 ? 1 : 2;
}

TEST(BucketStage, GivesEachSampleOnceInEachEpoch) {
  for (const std::int64_t batch : {1, 3, 8, 100}) {
    const Dataset data = sentences(50).bucketed(batch, {.bounds = {1, 4}});
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(sorted_numbers(sentence_order(data, epoch)), sentence_order(sentences(50), 0)) << batch;
    }
  }
}

// Lengths 0 to 6 come 10 times in 70 samples, so the buckets have 20, 30 and 20.
TEST(BucketStage, FillsABatchFromOneBucket) {
  const std::vector<int> order = sentence_order(sentences(70).bucketed(8, {.bounds = {1, 4}}), 5);

  std::multiset<int> buckets;
  for (std::size_t batch = 0; batch < 7; ++batch) {
    const int bucket = bucket_of(order[8 * batch]);
    buckets.insert(bucket);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(bucket_of(order[8 * batch + i]), bucket) << "batch " << batch;
  }
  EXPECT_EQ(buckets, (std::multiset<int>{0, 0, 1, 1, 1, 2, 2}));
  // What is left follows from short to long: 4, 6 and 4 samples.
  std::vector<int> rest;
  for (std::size_t i = 56; i < 70; ++i) rest.push_back(bucket_of(order[i]));
  EXPECT_THAT(rest, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2));
}

TEST(BucketStage, IsAFunctionOfSeedAndEpoch) {
  const Dataset data = sentences(50).bucketed(4, {.bounds = {1, 4}});
  const std::vector<int> order = sentence_order(data, 2);

  EXPECT_NE(sentence_order(data, 3), order);
  EXPECT_NE(sentence_order(data, 0), order);
  EXPECT_EQ(sentence_order(data, 2), order);
  EXPECT_EQ(sentence_order(sentences(50).bucketed(4, {.bounds = {1, 4}}), 2), order);
}

TEST(BucketStage, MixesTheBuckets) {
  const Dataset data = sentences(70).bucketed(8, {.bounds = {1, 4}});
  std::set<int> first;
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) first.insert(bucket_of(sentence_order(data, epoch)[0]));

  EXPECT_THAT(first, ElementsAre(0, 1, 2));
}

TEST(BucketStage, KeepsTheOrderOfTheDataWithoutAShuffle) {
  const Dataset data = sentences(7).bucketed(2, {.bounds = {1, 4}, .shuffle = false});

  // Lengths 0, 5, 3, 1, 6, 4, 2: whole batches first, and the third sample of the second bucket last.
  EXPECT_THAT(sentence_order(data, 0), ElementsAre(0, 3, 2, 5, 1, 4, 6));
  EXPECT_EQ(sentence_order(data, 9), sentence_order(data, 0));
  EXPECT_NO_THROW(data.cache());
}

TEST(BucketStage, AsksAFunctionForLengthsOnce) {
  int calls = 0;
  const Dataset data =
      numbers(6).bucketed(3, {.bounds = {1}, .shuffle = false, .length_of = [&calls](const SampleArrays& sample) {
                                ++calls;
                                return static_cast<std::int64_t>(sample.inputs.elements<float>(0)[0]) % 2 * 5;
                              }});

  EXPECT_THAT(first_features(data, 0), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_EQ(calls, 6);
}

TEST(BucketStage, WithAnIndexLooksAtSamplesOnceWhateverTheBounds) {
  TemporaryFolder folder;
  const std::string index = folder / "lengths.index";
  int calls = 0;
  const auto length_of = [&calls](const SampleArrays& sample) {
    ++calls;
    return static_cast<std::int64_t>(sample.targets.elements<float>("kind")[0]) % 7;
  };
  const auto bucketed = [&](std::vector<std::int64_t> bounds) {
    return sentences(50).bucketed(8, {.bounds = std::move(bounds), .length_of = length_of, .index = index});
  };
  const Dataset written = bucketed({1, 4});
  const Dataset read = bucketed({1, 4});
  const Dataset other = bucketed({2});

  EXPECT_EQ(calls, 50);
  EXPECT_EQ(sentence_order(read, 3), sentence_order(written, 3));
  EXPECT_EQ(read.description(), sentences(50).bucketed(8, {.bounds = {1, 4}, .length_of = length_of}).description());
  EXPECT_EQ(sentence_order(other, 3),
            sentence_order(sentences(50).bucketed(8, {.bounds = {2}, .length_of = length_of}), 3));
}

TEST(BucketStage, LeavesTheSourceToBatchesThatAreKeptOnADevice) {
  const auto length_of = [](const SampleArrays&) -> std::int64_t { return 1; };

  EXPECT_NO_THROW(numbers(7).bucketed(2, {.bounds = {4}, .length_of = length_of}).batch(2).keep_on_device());
}

TEST(BucketStage, IsDescribedByItsBuckets) {
  const auto described = [](std::int64_t batch, std::vector<std::int64_t> bounds) {
    return sentences(20).bucketed(batch, {.bounds = std::move(bounds)}).description();
  };

  EXPECT_THAT(described(4, {1, 4}),
              HasSubstr(R"({"kind":"bucketed","batch":4,"bounds":[1,4],"shuffle":true,"digest":")"));
  EXPECT_NE(described(4, {1, 4}), described(5, {1, 4}));
  EXPECT_NE(described(4, {1, 4}), described(4, {1, 5}));
}

TEST(BucketStage, RefusesWrongBoundsAndPlaces) {
  const auto expect_refused = [](const std::function<void()>& make, const std::string& reason) {
    EXPECT_EQ(code_thrown_by(make), ErrorCode::invalid_argument);
    EXPECT_THAT(sentence_thrown_by(make), HasSubstr(reason));
  };
  const auto negative = [](const SampleArrays&) -> std::int64_t { return -2; };

  expect_refused([] { sentences(9).bucketed(2, {}); }, "needs bounds");
  expect_refused([] { sentences(9).bucketed(0, {.bounds = {1}}); }, "a batch has one sample or more, not 0");
  expect_refused([] { sentences(9).bucketed(2, {.bounds = {4, 4}}); }, "bound 1 cannot be 4");
  expect_refused([] { sentences(9).bucketed(2, {.bounds = {-1}}); }, "bound 0 cannot be -1");
  expect_refused([] { sentences(9).shuffle().bucketed(2, {.bounds = {4}}); }, "it stands after shuffle()");
  expect_refused([] { sentences(9).bucketed(2, {.bounds = {4}}).bucketed(2, {.bounds = {4}}); },
                 "it stands after bucketed()");
  expect_refused([] { sentences(9).bucketed(2, {.bounds = {4}}).split(0.5); }, "split() stands after bucketed()");
  expect_refused([] { sentences(9).bucketed(2, {.bounds = {4}}).filter([](const SampleArrays&) { return true; }); },
                 "filter() stands after bucketed()");
  expect_refused([] { numbers(9).bucketed(2, {.bounds = {4}}); }, "from an input \"length\"");
  expect_refused([&] { numbers(9).bucketed(2, {.bounds = {4}, .length_of = negative}); },
                 "sample 0 has the length -2, below 0");
}

}  // namespace
}  // namespace holdfast
