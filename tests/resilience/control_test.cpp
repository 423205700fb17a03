// Requests to a live run do not change its bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "resilience/digits_run.h"
#include "support/comes_true.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

DigitsRun long_run(int replicas) {
  return {.replicas = replicas, .options = {{"--epochs", "6"}, {"--save-every", "1000"}}};
}

// The same run with steps that take so many times as long, for most of which rank 0 sleeps.
DigitsRun slow_run(int replicas, int factor) {
  DigitsRun run = long_run(replicas);
  run.faults = {"rank=0,step=3,fault=slow,factor=" + std::to_string(factor) + ",count=1000"};
  return run;
}

const std::string& undisturbed_digest_of_long_run() {
  static const std::string digest = completed(long_run(1)).at("weights_digest");
  return digest;
}

ProgramResult holdfast(const std::vector<std::string>& arguments) {
  return run_program(built_program("holdfast"), arguments);
}

class SteeredRun : public testing::Test {
 protected:
  // Calls steer() during slower and slower runs, until steer() says that a run lived long enough. How many steps a busy
  // machine makes meanwhile is chance.
  void beside_a_run(int replicas, const std::function<bool()>& steer) {
    for (int factor = 100;; factor *= 4) {
      std::filesystem::remove_all(run_);
      std::filesystem::remove(folder_ / "report.json");
      program_.emplace(built_program("digits"), digits_arguments(slow_run(replicas, factor), folder_));
      const bool trains = comes_true([&] { return has_ended() || status().value("step", -1) > 0; });
      ASSERT_TRUE(trains) << "it does not train";
      if (!has_ended() && steer()) return;
      if (testing::Test::HasFailure() || factor > 100 * 4 * 4) FAIL() << "no run lived long enough";
    }
  }

  bool has_ended() const { return std::filesystem::exists(folder_ / "report.json"); }

  // An empty object when no run is live.
  Json status() const {
    const ProgramResult result = holdfast({"status", run_, "--json", "--once"});
    return result.exit_code == 0 ? Json::parse(result.output) : Json(Json::object());
  }

  void expect_the_undisturbed_end() {
    const ProgramResult result = program_->wait();
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest_of_long_run());
  }

  const TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
  std::optional<RunningProgram> program_;
};

TEST_F(SteeredRun, WritesASavepointOnRequestAndEndsWithTheSameBits) {
  const TemporaryFolder other;
  beside_a_run(2, [&] {
    std::filesystem::create_directory(other / "run");
    // Three savepoints later the run deletes this one, as usual. On a busy machine that may happen before it is copied.
    while (true) {
      const ProgramResult asked = holdfast({"snapshot", run_});
      if (asked.exit_code != 0) {
        EXPECT_TRUE(has_ended()) << asked.output;
        return false;
      }
      const std::filesystem::path path = asked.output.substr(0, asked.output.find(": durable"));
      std::error_code failure;
      std::filesystem::copy_file(path, other / ("run/" + path.filename().string()), failure);
      if (!failure) return true;
    }
  });
  expect_the_undisturbed_end();
  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments(long_run(1), other));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(other).at("weights_digest"), undisturbed_digest_of_long_run());
  EXPECT_EQ(journal_of(other).at(0).at("event"), "watchdog_started");
  EXPECT_THAT(read_file(other / "run/journal.jsonl"), HasSubstr("\"resumed\""));
}

TEST_F(SteeredRun, EndsWithTheSameBitsWhenItIsScaled) {
  ProgramResult refused;
  beside_a_run(2, [&] {
    // False when the run has ended.
    const auto scale = [&](const char* replicas) {
      const ProgramResult scaled = holdfast({"scale", run_, replicas});
      EXPECT_TRUE(scaled.exit_code == 0 || has_ended()) << scaled.output;
      return scaled.exit_code == 0;
    };
    if (!scale("4")) return false;
    EXPECT_TRUE(comes_true([&] {
      const Json now = status();
      return has_ended() || (now.contains("members") && now.at("members").size() == 4 &&
                             now.at("members").at(3).at("stage") == "training");
    }));
    if (!scale("1")) return false;
    refused = holdfast({"scale", run_, "5"});
    return refused.output.find("1 to 4") != std::string::npos || !has_ended();
  });
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("1 to 4"));
  expect_the_undisturbed_end();
}

// The replica that is killed hangs in a step, so that the run cannot end before. The other one hangs later, and is
// killed only when the watchdog has seen that it went on: the report knows by that what the first death has cost.
TEST_F(SteeredRun, IsShownWhileItLivesAndReportedAfterwards) {
  HeldRun run({.replicas = 2, .faults = {"rank=0,step=20,fault=hang"}}, {1}, 13, folder_);
  run.wait_until_held();

  const ProgramResult shown = holdfast({"status", run_, "--once"});
  const int pid = status().at("members").at(1).at("pid");
  run.kill(1);
  ASSERT_TRUE(comes_true([&] {
    const std::vector<Json> lines = journal_of(folder_);
    const bool has_gone_on = std::ranges::any_of(
        lines, [](const Json& line) { return line.at("event") == "progressed" && line.at("generation") > 0; });
    return has_gone_on && run.faults_fired() == 2;
  }));
  run.kill(0);
  const ProgramResult result = run.wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
  const ProgramResult told = holdfast({"report", run_});
  const ProgramResult gone = holdfast({"status", run_});

  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.output, HasSubstr("running, generation 0, 2 replicas wanted"));
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_THAT(told.output, HasSubstr("pid " + std::to_string(pid)));
  EXPECT_THAT(told.output, HasSubstr("killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(told.output, HasSubstr("lost: no step: 1 survivor kept the state"));
  EXPECT_EQ(gone.exit_code, 2);
  EXPECT_THAT(gone.output, HasSubstr("no run is live"));
}

}  // namespace
}  // namespace holdfast
