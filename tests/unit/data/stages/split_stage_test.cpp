// A split puts each sample into the same part in every epoch, whatever stages follow, and always draws
// the same.

#include "data/stages/split_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "holdfast/base/error.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

// The numbers of the samples of numbers(), in the order of an epoch.
Numbers drawn(const Dataset& part, std::int64_t epoch = 0, std::uint64_t seed = 1) {
  Numbers all;
  for (std::int64_t position = 0; position < part.size(); ++position) {
    std::vector<float> features(2);
    std::vector<float> targets(1);
    part.load(seed, epoch, position, {.features = features, .targets = targets});
    all.push_back(static_cast<std::int64_t>(-targets[0]));
  }
  return all;
}

Numbers ordered(Numbers values) {
  std::ranges::sort(values);
  return values;
}

Numbers up_to(std::int64_t count) {
  Numbers all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

Numbers joined(Numbers a, const Numbers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return ordered(std::move(a));
}

// Sample i has the feature i and the target labels[i].
Dataset labelled(const std::vector<float>& labels) {
  const auto count = static_cast<std::int64_t>(labels.size());
  Tensor features{Shape{count, 1}};
  for (std::int64_t i = 0; i < count; ++i) features.sample(i)[0] = static_cast<float>(i);
  return from_tensors(std::move(features), Tensor(Shape{count}, labels));
}

std::vector<float> sorted_labels(const std::vector<std::pair<float, int>>& counts) {
  std::vector<float> labels;
  for (const auto& [label, count] : counts) labels.insert(labels.end(), static_cast<std::size_t>(count), label);
  return labels;
}

std::map<float, std::int64_t> count_labels(const Dataset& part) {
  std::map<float, std::int64_t> counts;
  std::vector<float> features(static_cast<std::size_t>(part.feature_shape().element_count()));
  for (std::int64_t position = 0; position < part.size(); ++position) {
    std::vector<float> label(1);
    part.load(0, 0, position, {.features = features, .targets = label});
    ++counts[label[0]];
  }
  return counts;
}

template <typename Function>
void expect_split_refused(const Function& function, const std::string& reason,
                          ErrorCode code = ErrorCode::invalid_argument) {
  try {
    function();
    ADD_FAILURE() << "nothing was refused; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(Split, PutsEachSampleIntoOnePart) {
  const auto [training, validation] = numbers(100).split(0.2);

  EXPECT_EQ(training.size(), 80);
  EXPECT_EQ(validation.size(), 20);
  EXPECT_EQ(joined(drawn(training), drawn(validation)), up_to(100));
}

TEST(Split, TakesANumberOfSamples) {
  const auto [training, validation] = numbers(100).split(7);

  EXPECT_EQ(training.size(), 93);
  EXPECT_EQ(validation.size(), 7);
}

TEST(Split, TakesAFractionInFloatAndACountOfAnyType) {
  EXPECT_EQ(numbers(10).split(0.3F).validation.size(), 3);
  EXPECT_EQ(numbers(10).split(std::size_t{3}).validation.size(), 3);
  EXPECT_EQ(numbers(10).split(std::int64_t{3}).validation.size(), 3);
}

TEST(Split, RoundsTheFractionToSamples) {
  EXPECT_EQ(numbers(11).split(0.2).validation.size(), 2);
  EXPECT_EQ(numbers(14).split(0.25).validation.size(), 4);
  EXPECT_EQ(numbers(3).split(0.5).validation.size(), 2);
}

TEST(Split, KeepsTheOrderOfTheData) {
  const auto [training, validation] = numbers(100).split(0.3);

  EXPECT_EQ(drawn(training), ordered(drawn(training)));
  EXPECT_EQ(drawn(validation), ordered(drawn(validation)));
}

// The mistake that take() and skip() after shuffle() lead to: 49 of 60 samples for validation were trained on.
TEST(Split, KeepsItsPartsApartWhateverFollowsInAnyEpochOfAnySeed) {
  for (const std::int64_t count : {5, 64, 333}) {
    for (const std::uint64_t split_seed : {0U, 1U, 77U}) {
      const auto [training, validation] = numbers(count).split(0.4, {.seed = split_seed});
      std::set<std::int64_t> trained;
      std::set<std::int64_t> validated;
      for (const std::uint64_t seed : {1U, 2U}) {
        for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
          for (const std::int64_t sample : drawn(training.shuffle().repeat(2).map(add_noise), epoch, seed)) {
            trained.insert(sample);
          }
          const Dataset reordered = validation.skip(1).shuffle(7).repeat(3);
          for (const std::int64_t sample : drawn(reordered, epoch, seed)) validated.insert(sample);
        }
      }
      Numbers both;
      std::ranges::set_intersection(trained, validated, std::back_inserter(both));

      EXPECT_TRUE(both.empty()) << both.size() << " of " << count << " samples are in both parts";
      EXPECT_EQ(static_cast<std::int64_t>(trained.size()), training.size());
    }
  }
}

TEST(Split, DrawsTheSameForTheSameSeedAndSize) {
  EXPECT_EQ(drawn(numbers(50).split(0.5).validation), drawn(numbers(50).split(25).validation));
  EXPECT_NE(drawn(numbers(50).split(0.5).validation), drawn(numbers(50).split(0.5, {.seed = 1}).validation));
  EXPECT_NE(drawn(numbers(50).split(0.5).validation), drawn(numbers(51).split(25).validation));
}

// The bits of runs depend on the draw. The numbers are those of Philox and Fisher-Yates written in Python.
TEST(Split, DrawsWhatItAlwaysDrew) {
  EXPECT_THAT(drawn(numbers(20).split(5).validation), ElementsAre(2, 6, 9, 13, 16));
  EXPECT_THAT(drawn(numbers(20).split(5, {.seed = 3}).validation), ElementsAre(1, 11, 12, 13, 15));
  EXPECT_THAT(drawn(numbers(20).skip(1).split(5).validation), ElementsAre(5, 7, 8, 15, 17));
}

TEST(Split, MakesEverySampleEquallyLikely) {
  constexpr int kSeeds = 2000;
  std::vector<int> drawn_for_validation(10);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const std::int64_t sample : drawn(numbers(10).split(3, {.seed = seed}).validation)) {
      ++drawn_for_validation[static_cast<std::size_t>(sample)];
    }
  }

  // Binomial: mean 600, standard deviation 20.5. One in 10^5 such tests exceeds five of these.
  for (const int count : drawn_for_validation) EXPECT_NEAR(count, 600, 5 * 20.5);
}

TEST(Split, SplitsAPartAgain) {
  const auto [rest, test] = numbers(100).split(0.2);
  const auto [training, validation] = rest.split(0.25);

  EXPECT_EQ(training.size(), 60);
  EXPECT_EQ(validation.size(), 20);
  EXPECT_EQ(joined(joined(drawn(training), drawn(validation)), drawn(test)), up_to(100));
}

TEST(Split, BindsDrawsOfAMapBeforeItToTheSample) {
  const Dataset noisy = numbers(30).map(add_noise);
  const auto [training, validation] = noisy.split(0.5);

  for (const Dataset& part : {training, validation}) {
    for (std::int64_t position = 0; position < part.size(); ++position) {
      std::vector<float> of_part(2);
      std::vector<float> of_all(2);
      std::vector<float> target(1);
      part.load(4, 2, position, {.features = of_part, .targets = target});
      noisy.load(4, 2, static_cast<std::int64_t>(-target[0]), {.features = of_all, .targets = target});

      EXPECT_EQ(of_part, of_all);
    }
  }
}

TEST(Split, HasItsSeedAndPartInTheDescription) {
  const auto [training, validation] = numbers(10).split(4, {.seed = 6});
  const auto stage = nlohmann::json::parse(validation.description())["stages"][1];

  EXPECT_EQ(stage, (nlohmann::json{{"kind", "split"}, {"seed", 6}, {"validation", 4}, {"part", "validation"}}));
  EXPECT_NE(training.description(), validation.description());
  EXPECT_NE(validation.description(), numbers(10).split(4, {.seed = 7}).validation.description());
  EXPECT_NE(validation.description(), numbers(10).split(4, {.seed = 6, .by_label = false}).training.description());
  EXPECT_EQ(validation.description(), numbers(10).split(0.4, {.seed = 6}).validation.description());
}

TEST(Split, KeepsTheSourceForADevice) {
  const Dataset part = numbers(10).split(4).training.batch(2).keep_on_device();

  EXPECT_TRUE(part.is_kept_on_device());
  EXPECT_EQ(part.last_stage()->source_position(0, 0, 0), drawn(numbers(10).split(4).training)[0]);
}

TEST(Split, GivesEachClassItsShareOfDataSortedByClass) {
  const Dataset data = labelled(sorted_labels({{0, 100}, {1, 50}, {2, 10}}));

  const auto [training, validation] = data.split(0.2, {.by_label = true});

  EXPECT_EQ(count_labels(validation), (std::map<float, std::int64_t>{{0, 20}, {1, 10}, {2, 2}}));
  EXPECT_EQ(count_labels(training), (std::map<float, std::int64_t>{{0, 80}, {1, 40}, {2, 8}}));
}

TEST(Split, RoundsTheSharesOfClassesToTheWantedSum) {
  for (int count = 5; count <= 95; ++count) {
    const Dataset data = labelled(sorted_labels({{0, 2}, {1, 7}, {2, 20}, {3, 31}, {4, 40}}));
    const auto [training, validation] = data.split(count, {.by_label = true});

    const auto counts = count_labels(validation);
    std::int64_t sum = 0;
    for (const auto& [label, of_validation] : counts) sum += of_validation;
    EXPECT_EQ(sum, count);
    EXPECT_EQ(validation.size(), count);
    for (const auto& [label, all] : count_labels(data)) {
      const double share = static_cast<double>(all) * count / 100;
      const std::int64_t of_validation = counts.contains(label) ? counts.at(label) : 0;
      EXPECT_GE(of_validation, 1) << "class " << label << " of " << count;
      EXPECT_LE(of_validation, all - 1) << "class " << label << " of " << count;
      // The smallest class may get more than its share, which other classes give up.
      EXPECT_LT(std::abs(static_cast<double>(of_validation) - share), 2) << "class " << label << " of " << count;
    }
  }
}

TEST(Split, GivesARareClassASampleInEachPart) {
  const auto [training, validation] = labelled(sorted_labels({{0, 1000}, {7, 2}})).split(0.1, {.by_label = true});

  EXPECT_EQ(count_labels(training).at(7), 1);
  EXPECT_EQ(count_labels(validation).at(7), 1);
  EXPECT_EQ(validation.size(), 100);
}

TEST(Split, KeepsPartsByLabelApart) {
  const Dataset data = labelled(sorted_labels({{3, 30}, {1, 20}, {2, 50}}));
  const auto [training, validation] = data.split(0.33, {.seed = 5, .by_label = true});

  std::set<std::int64_t> sources;
  for (const Dataset& part : {training, validation}) {
    for (std::int64_t i = 0; i < part.size(); ++i) sources.insert(part.last_stage()->source_position(1, 0, i));
  }

  EXPECT_EQ(sources.size(), 100U);
}

TEST(Split, TakesOneHotRowsAsClasses) {
  Tensor features{Shape{40, 1}};
  Tensor targets{Shape{40, 2}};
  for (std::int64_t i = 0; i < 40; ++i) targets.sample(i)[i < 30 ? 0 : 1] = 1;

  const auto [training, validation] = from_tensors(features, targets).split(0.1, {.by_label = true});

  std::vector<float> feature(1);
  std::vector<float> row(2);
  validation.load(0, 0, 3, {.features = feature, .targets = row});
  EXPECT_THAT(row, ElementsAre(0, 1));
  validation.load(0, 0, 2, {.features = feature, .targets = row});
  EXPECT_THAT(row, ElementsAre(1, 0));
}

TEST(Split, TakesLabelsThatAMapMakes) {
  const auto label = [](Sample sample, Random&) { sample.targets[0] = sample.features[0] < 20 ? 5.0F : 6.0F; };
  const Dataset data = labelled(std::vector<float>(40)).map(label);

  const auto [training, validation] = data.split(0.25, {.by_label = true});

  EXPECT_EQ(count_labels(validation), (std::map<float, std::int64_t>{{5, 5}, {6, 5}}));
}

TEST(Split, ReadsNoFeaturesForLabelsAfterAMapOfFeatures) {
  int calls = 0;
  const auto count_calls = [&](std::span<const float>, std::span<float>, Random&) { ++calls; };
  const Dataset data = labelled(sorted_labels({{0, 10}, {1, 10}})).take(20).map(Shape{1000}, count_calls);

  data.split(0.5, {.by_label = true}).training.split(0.5, {.by_label = true});

  EXPECT_EQ(calls, 0);
}

TEST(Split, HasTheClassesInTheDescription) {
  const auto split_by_label = [](const std::vector<float>& labels) {
    const auto relabel = [labels](Sample sample, Random&) {
      sample.targets[0] = labels[static_cast<std::size_t>(sample.features[0])];
    };
    return labelled({0, 0, 0, 0, 0, 0}).map(relabel).split(0.5, {.by_label = true}).training.description();
  };

  EXPECT_EQ(split_by_label({0, 0, 1, 1, 2, 2}), split_by_label({0, 0, 1, 1, 2, 2}));
  EXPECT_NE(split_by_label({0, 0, 1, 1, 2, 2}), split_by_label({0, 1, 1, 0, 2, 2}));
}

TEST(Split, RefusesNumbersThatAreNotAFraction) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double fraction : {0.0, 1.0, -0.2, 1.5, nan, std::numeric_limits<double>::infinity()}) {
    expect_split_refused([&] { numbers(10).split(fraction); }, "takes a fraction between 0 and 1");
  }
  expect_split_refused([] { numbers(10).split(20.0); }, "split(20.0)");
}

TEST(Split, RefusesPartsWithoutSamples) {
  expect_split_refused([] { numbers(10).split(0.01); }, "split(0.01) of 10 samples leaves no sample for validation");
  expect_split_refused([] { numbers(10).split(0.99); }, "leaves no sample for training");
  for (const int count : {-1, 0, 10, 11}) {
    expect_split_refused([&] { numbers(10).split(count); }, "split() of " + std::to_string(count) + " samples");
  }
  expect_split_refused([] { numbers(1).split(0.5); }, "leaves no sample for training");
  expect_split_refused([] { numbers(0).split(1); }, "out of 0 would leave a part without samples");
}

TEST(Split, RefusesClassesOfOneSample) {
  expect_split_refused(
      [] {
        labelled(sorted_labels({{0, 10}, {1, 10}, {4, 1}})).split(0.5, {.by_label = true});
      },
      "class 4.0 has one (sample 20)");
}

TEST(Split, RefusesPartsWithFewerSamplesThanClasses) {
  const Dataset data = labelled(sorted_labels({{0, 10}, {1, 10}, {2, 10}}));

  expect_split_refused([&] { data.split(2, {.by_label = true}); }, "each of the 3 classes into both parts");
  expect_split_refused([&] { data.split(28, {.by_label = true}); }, "which are to have 2 and 28 samples");
}

TEST(Split, RefusesLabelsThatAreNotANumber) {
  expect_split_refused([] { labelled({0, 0, std::nanf("")}).split(1, {.by_label = true}); }, "sample 2 has a target");
}

TEST(Split, RefusesToFollowStagesThatMixSamples) {
  expect_split_refused([] { numbers(10).shuffle().map(add_noise).split(0.5); }, "split() stands after shuffle()");
  expect_split_refused([] { numbers(10).repeat(2).take(15).split(0.5); }, "split() stands after repeat()");
  expect_split_refused([] { numbers(10).batch(2).split(0.5); }, "split() stands after batch()");
}

}  // namespace
}  // namespace holdfast
