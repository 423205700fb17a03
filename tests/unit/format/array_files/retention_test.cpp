// The policies one by one, and then the promises of retention.h for thousands of random folders and policies.

#include "holdfast/format/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

using Names = std::vector<std::string>;

// Entry "a" has step 1, "b" step 2, and so on. All have 10 bytes and are whole.
std::vector<SavepointEntry> entries_with(const std::vector<std::optional<double>>& metrics) {
  std::vector<SavepointEntry> entries;
  for (const std::optional<double>& metric : metrics) {
    const auto step = static_cast<std::int64_t>(entries.size()) + 1;
    entries.push_back({.name = std::string(1, static_cast<char>('a' + step - 1)),
                       .step = step,
                       .file_bytes = 10,
                       .metric = metric,
                       .is_whole = true});
  }
  return entries;
}

std::vector<SavepointEntry> entries(std::size_t count) {
  return entries_with(std::vector<std::optional<double>>(count));
}

TEST(Retention, KeepsTheNewest) {
  EXPECT_EQ(savepoints_to_delete(entries(5), {.keep_last = 2}), (Names{"a", "b", "c"}));
  EXPECT_EQ(savepoints_to_delete(entries(2), {.keep_last = 2}), Names{});
  EXPECT_EQ(savepoints_to_delete(entries(5), {.keep_last = 100}), Names{});
}

TEST(Retention, KeepsAllIfKeepLastIsZero) {
  EXPECT_EQ(savepoints_to_delete(entries(5), {.keep_last = 0, .keep_best = 1, .keep_every_steps = 2}), Names{});
}

TEST(Retention, KeepsTheBestInAdditionToTheNewest) {
  const auto measured = entries_with({3.0, 1.0, 2.0, 4.0, 5.0});

  EXPECT_EQ(savepoints_to_delete(measured, {.keep_last = 1, .keep_best = 2}), (Names{"a", "d"}));
  EXPECT_EQ(savepoints_to_delete(measured, {.keep_last = 1, .keep_best = 2, .best = BestValue::highest}),
            (Names{"a", "b", "c"}));
}

TEST(Retention, PrefersTheOlderOfTwoEquallyGoodSavepoints) {
  EXPECT_EQ(savepoints_to_delete(entries_with({1.0, 1.0, 1.0, {}}), {.keep_last = 1, .keep_best = 1}),
            (Names{"b", "c"}));
}

TEST(Retention, NeverCountsAMissingMetricOrNaNAsTheBest) {
  EXPECT_EQ(savepoints_to_delete(entries_with({std::nan(""), {}, 7.0, {}, 9.0}), {.keep_last = 1, .keep_best = 1}),
            (Names{"a", "b", "d"}));
}

TEST(Retention, NeverDeletesMultiplesOfKeepEverySteps) {
  EXPECT_EQ(savepoints_to_delete(entries(7), {.keep_last = 1, .keep_every_steps = 3}), (Names{"a", "b", "d", "e"}));
}

TEST(Retention, DeletesNothingUntilANewerSavepointIsKnownToBeWhole) {
  auto unknown = entries(4);
  for (SavepointEntry& entry : unknown) entry.is_whole = false;
  EXPECT_EQ(savepoints_to_delete(unknown, {.keep_last = 1}), Names{});

  unknown[1].is_whole = true;
  EXPECT_EQ(savepoints_to_delete(unknown, {.keep_last = 1}), Names{"a"});
}

TEST(Retention, DeletesTheOldestFirstToMeetTheBudget) {
  EXPECT_EQ(savepoints_to_delete(entries(5), {.max_bytes = 30}), (Names{"a", "b"}));
  EXPECT_EQ(savepoints_to_delete(entries(5), {.max_bytes = 50}), Names{});
  EXPECT_EQ(savepoints_to_delete(entries(5), {.keep_last = 4, .max_bytes = 29}), (Names{"a", "b", "c"}));
}

TEST(Retention, ExceedsTheBudgetRatherThanDeleteTheNewestOrTheBest) {
  const auto measured = entries_with({3.0, 1.0, 2.0, 4.0, 5.0});

  EXPECT_EQ(savepoints_to_delete(measured, {.keep_best = 2, .keep_every_steps = 4, .max_bytes = 1}), (Names{"a", "c"}));
}

TEST(Retention, RefusesNegativeNumbers) {
  EXPECT_THROW(check({.keep_last = -1}), Error);
  EXPECT_THROW(check({.keep_best = -1}), Error);
  EXPECT_THROW(check({.keep_every_steps = -1}), Error);
  check({});
}

// The promises that hold for every folder and every policy.
class AnyRetention : public ::testing::TestWithParam<int> {
 protected:
  std::int64_t draw(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }

  std::vector<SavepointEntry> draw_entries() {
    std::vector<SavepointEntry> drawn;
    for (std::int64_t step = draw(0, 5); drawn.size() < 12 && draw(0, 11) > 0; step += draw(1, 4)) {
      SavepointEntry entry{.name = std::to_string(step), .step = step};
      entry.file_bytes = static_cast<std::uint64_t>(draw(0, 9));
      if (draw(0, 2) > 0) entry.metric = static_cast<double>(draw(0, 4));
      if (draw(0, 9) == 0) entry.metric = std::nan("");
      entry.is_whole = draw(0, 1) > 0;
      drawn.push_back(entry);
    }
    return drawn;
  }

  RetentionPolicy draw_policy() {
    return {.keep_last = draw(0, 4),
            .keep_best = draw(0, 3),
            .keep_every_steps = draw(0, 4),
            .best = draw(0, 1) > 0 ? BestValue::highest : BestValue::lowest,
            .max_bytes = static_cast<std::uint64_t>(draw(0, 1) * draw(0, 50))};
  }

  std::mt19937_64 random_{static_cast<std::uint64_t>(GetParam())};
};

TEST_P(AnyRetention, KeepsItsPromises) {
  for (int round = 0; round < 5000; ++round) {
    std::vector<SavepointEntry> all = draw_entries();
    const RetentionPolicy policy = draw_policy();
    const Names names = savepoints_to_delete(all, policy);
    const std::set<std::string> given_up(names.begin(), names.end());
    ASSERT_EQ(given_up.size(), names.size());

    std::vector<SavepointEntry> left = all;
    std::erase_if(left, [&](const SavepointEntry& entry) { return given_up.contains(entry.name); });
    ASSERT_EQ(left.size() + names.size(), all.size()) << "a name that is not there";

    std::int64_t newest_whole = -1;
    std::optional<double> best;
    const auto is_better = [&](double a, double b) { return policy.best == BestValue::lowest ? a < b : a > b; };
    for (const SavepointEntry& entry : all) {
      if (entry.is_whole) newest_whole = entry.step;
      const bool is_number = entry.metric && !std::isnan(entry.metric.value());
      if (is_number && (!best || is_better(entry.metric.value(), *best))) best = entry.metric;
    }
    bool has_best = !best || policy.keep_best == 0;
    for (const SavepointEntry& entry : left) has_best = has_best || entry.metric == best;
    EXPECT_TRUE(has_best);
    for (const SavepointEntry& entry : all) {
      const bool is_for_ever = policy.keep_every_steps > 0 && entry.step % policy.keep_every_steps == 0;
      if (entry.step >= newest_whole || is_for_ever) {
        EXPECT_FALSE(given_up.contains(entry.name));
      }
    }

    EXPECT_TRUE(savepoints_to_delete(left, policy).empty()) << "not at once";
    std::shuffle(all.begin(), all.end(), random_);
    EXPECT_EQ(savepoints_to_delete(all, policy), names) << "it depends on the order";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyRetention, ::testing::Range(0, 4));

}  // namespace
}  // namespace holdfast::format
