// A replica computes at half the speed of the others. It is assigned fewer shards or replaced, and the weights at the
// end are those of an undisturbed run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "resilience/digits_run.h"
#include "support/comes_true.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// 520 steps of 6 shards, which take 4 ms each, one after the other.
ProgramResult run_paced(const TemporaryFolder& folder, std::vector<std::string> options,
                        const std::vector<std::string>& faults = {}) {
  options.insert(options.end(), {"--run-dir", folder / "run"});
  for (const std::string& fault : faults) options.insert(options.end(), {"--inject", fault});
  return run_program(built_program("paced_program"), options);
}

// "steps 520 weights DIGEST", which the primary prints at the end.
std::string weights_of(const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::size_t begin = result.output.find("steps 520 weights ");
  if (begin == std::string::npos) return "none in: " + result.output;
  return result.output.substr(begin, result.output.find('\n', begin) - begin);
}

const std::string& undisturbed_weights() {
  static const std::string weights = [] {
    const TemporaryFolder folder;
    return weights_of(run_paced(folder, {"--replicas", "1", "--shard-ms", "0"}));
  }();
  return weights;
}

class SlowReplicas : public testing::Test {
 protected:
  void run(const std::vector<std::string>& options, const std::vector<std::string>& faults) {
    look_at(run_paced(folder_, options, faults));
  }

  void look_at(const ProgramResult& result) {
    EXPECT_EQ(weights_of(result), undisturbed_weights());
    journal_ = journal_of(folder_);
  }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    std::copy_if(journal_.begin(), journal_.end(), std::back_inserter(found),
                 [&](const Json& line) { return line.at("event") == name; });
    return found;
  }

  // All deals in their order; an even one is empty.
  std::vector<std::vector<int>> assignments() const {
    std::vector<std::vector<int>> all;
    for (const Json& line : events("dealt")) all.push_back(line.value("shards", std::vector<int>{}));
    return all;
  }

  // The first deal: 4 to 2, or 5 to 1 when a busy machine makes the slow replica even slower.
  void expect_fewer_for(std::size_t slow) const {
    ASSERT_FALSE(assignments().empty());
    const std::vector<int> first = assignments()[0];
    ASSERT_EQ(first.size(), 2U);
    EXPECT_EQ(first[0] + first[1], 6);
    EXPECT_LE(first[slow], 2);
  }

  std::string status_text() const {
    return run_program(built_program("holdfast"), {"status", folder_ / "run", "--once"}).output;
  }
  std::string report_text() const { return run_program(built_program("holdfast"), {"report", folder_ / "run"}).output; }

  TemporaryFolder folder_;
  std::vector<Json> journal_;
};

std::string slow(int rank, const std::string& rest = "") {
  return "rank=" + std::to_string(rank) + ",step=2,fault=slow,factor=2" + rest;
}

TEST_F(SlowReplicas, GetFewerShardsAndNoReplicaIsEnded) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    std::filesystem::remove_all(folder_ / "run");

    run({"--when-slow", "deal"}, {slow(rank)});

    expect_fewer_for(static_cast<std::size_t>(rank));
    EXPECT_TRUE(events("restart").empty());
    EXPECT_TRUE(events("resumed").empty());
  }
}

// Under `holdfast run` the watchdog knows about shards only what replicas report.
TEST_F(SlowReplicas, GetFewerShardsUnderTheRunCommandAsItsStatusShows) {
  RunningProgram program(built_program("holdfast"),
                         {"run", "--replicas", "2", "--when-slow", "deal", "--run-dir", folder_ / "run", "--inject",
                          slow(1), "--", built_program("paced_program"), "--run-dir", folder_ / "run"});

  EXPECT_TRUE(comes_true([this] { return status_text().find("SHARDS") != std::string::npos; }));

  look_at(program.wait());
  expect_fewer_for(1);
  const std::string told = report_text();
  EXPECT_THAT(told, HasSubstr("replica 1 (process 1, device slot 1) of generation 0 was slow, since step"));
  EXPECT_THAT(told, HasSubstr("shards were assigned "));
}

TEST_F(SlowReplicas, GetEqualSharesAgainWhenOneOfThemDies) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    std::filesystem::remove_all(folder_ / "run");

    run({"--when-slow", "deal"}, {slow(1), kill_of(rank, 400)});

    expect_fewer_for(1);
    const std::vector<std::vector<int>> all = assignments();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& assignment) { return assignment.empty(); }));
    EXPECT_EQ(events("restart").size(), 1U);
    EXPECT_TRUE(events("resumed").empty());
  }
}

TEST_F(SlowReplicas, GetAsManyAgainOnceTheyAreFast) {
  run({"--when-slow", "deal"}, {slow(1, ",count=250")});

  expect_fewer_for(1);
  EXPECT_EQ(assignments().back(), (std::vector<int>{3, 3}));
}

TEST_F(SlowReplicas, AreReplacedByASpare) {
  run({"--when-slow", "replace", "--spares", "1"}, {slow(1)});

  ASSERT_EQ(events("restart").size(), 1U);
  const Json restart = events("restart")[0].at("restart");
  EXPECT_EQ(restart.at("rank"), 1);
  EXPECT_TRUE(restart.at("cause").get<std::string>().starts_with("was slow: it computes ")) << restart.dump();
  EXPECT_THAT(report_text(), ContainsRegex("it was ended, and process [012] replaced it"));
  EXPECT_TRUE(events("resumed").empty());
}

TEST_F(SlowReplicas, AreOnlyReportedByDefault) {
  run({}, {slow(1)});

  EXPECT_FALSE(events("straggler").empty());
  EXPECT_TRUE(events("dealt").empty());
  EXPECT_TRUE(events("restart").empty());
  EXPECT_THAT(report_text(), HasSubstr("its shards stayed the same"));
}

}  // namespace
}  // namespace holdfast
