// A replica that computes at half the speed of the others: it is dealt fewer shards or replaced, and the weights at the
// end are those of an undisturbed run.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

using nlohmann::json;

// 6 shards on two replicas; long enough for a slow one to be found early, and for others things to happen after that.
const std::map<std::string, std::string> kLong{{"--shards", "6"}, {"--epochs", "100"}, {"--save-every", "0"}};
constexpr int kSteps = 900;

const std::string& undisturbed_digest_of_a_long_run() {
  static const std::string digest = completed({.replicas = 1, .options = kLong}).at("weights_digest");
  return digest;
}

class SlowReplicas : public testing::Test {
 protected:
  void run(const std::vector<std::string>& faults, std::map<std::string, std::string> options) {
    options.insert(kLong.begin(), kLong.end());
    const DigitsRun digits{.replicas = 2, .faults = faults, .options = options};
    const ProgramResult result = run_program(built_program("digits"), digits_arguments(digits, folder_));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    journal_ = journal_of(folder_);
    EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest_of_a_long_run());
    EXPECT_EQ(report_of(folder_).at("steps"), kSteps);
  }

  std::vector<json> events(const std::string& name) const {
    std::vector<json> found;
    std::copy_if(journal_.begin(), journal_.end(), std::back_inserter(found),
                 [&](const json& line) { return line.at("event") == name; });
    return found;
  }

  // All deals in their order; an even one is empty.
  std::vector<std::vector<int>> deals() const {
    std::vector<std::vector<int>> all;
    for (const json& line : events("dealt")) all.push_back(line.value("shards", std::vector<int>{}));
    return all;
  }

  TemporaryFolder folder_;
  std::vector<json> journal_;
};

std::string slow(int rank, const std::string& rest = "") {
  return "rank=" + std::to_string(rank) + ",step=2,fault=slow,factor=2" + rest;
}

std::string kill_of(int rank, int step) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=kill";
}

}  // namespace

TEST_F(SlowReplicas, AreDealtFewerShardsAndNobodyIsEnded) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    std::filesystem::remove_all(folder_ / "run");

    run({slow(rank)}, {{"--when-slow", "deal"}});

    ASSERT_FALSE(deals().empty());
    EXPECT_EQ(deals()[0], (rank == 1 ? std::vector<int>{4, 2} : std::vector<int>{2, 4}));
    EXPECT_TRUE(events("restart").empty());
    EXPECT_TRUE(events("resumed").empty());
  }
}

TEST_F(SlowReplicas, AreDealtEvenlyAgainWhenAnotherDies) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    std::filesystem::remove_all(folder_ / "run");

    run({slow(1), kill_of(rank, 600)}, {{"--when-slow", "deal"}});

    ASSERT_GE(deals().size(), 2U);
    EXPECT_EQ(deals()[0], (std::vector<int>{4, 2}));
    EXPECT_TRUE(deals()[1].empty());
    EXPECT_EQ(events("restart").size(), 1U);
    EXPECT_TRUE(events("resumed").empty());
  }
}

TEST_F(SlowReplicas, AreDealtAsManyAgainOnceTheyAreQuick) {
  run({slow(1, ",count=500")}, {{"--when-slow", "deal"}});

  ASSERT_GE(deals().size(), 2U);
  EXPECT_EQ(deals()[0], (std::vector<int>{4, 2}));
  EXPECT_EQ(deals()[1], (std::vector<int>{3, 3}));
}

TEST_F(SlowReplicas, AreReplacedByASpare) {
  run({slow(1)}, {{"--when-slow", "replace"}, {"--spares", "1"}});

  ASSERT_EQ(events("restart").size(), 1U);
  const json restart = events("restart")[0].at("restart");
  EXPECT_EQ(restart.at("rank"), 1);
  EXPECT_TRUE(restart.at("cause").get<std::string>().starts_with("was slow: it computes ")) << restart.dump();
  EXPECT_TRUE(events("resumed").empty());
}

TEST_F(SlowReplicas, AreOnlyReportedByDefault) {
  run({slow(1)}, {});

  EXPECT_FALSE(events("straggler").empty());
  EXPECT_TRUE(events("dealt").empty());
  EXPECT_TRUE(events("restart").empty());
}

}  // namespace holdfast
