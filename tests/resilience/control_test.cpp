// Steering a real run from outside leaves its bits alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <functional>
#include <optional>
#include <thread>

#include "resilience/digits_run.h"
#include "support/comes_true.h"

namespace holdfast {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Some seconds of training, so that there is time to ask.
const std::map<std::string, std::string> kLong = {{"--epochs", "60"}, {"--save-every", "1000"}};

std::string undisturbed_long_digest() {
  static const std::string digest = completed({.replicas = 1, .options = kLong}).at("weights_digest");
  return digest;
}

ProgramResult holdfast(const std::vector<std::string>& arguments) {
  return run_program(built_program("holdfast"), arguments);
}

class SteeredRun : public testing::Test {
 protected:
  void start(int replicas) {
    program_.emplace(built_program("digits"), digits_arguments({.replicas = replicas, .options = kLong}, folder_));
    ASSERT_TRUE(comes_true([&] { return status().value("step", -1) > 0; })) << "it does not train";
  }

  // Null where no run is live.
  json status() const {
    const ProgramResult result = holdfast({"status", run_, "--json", "--once"});
    return result.exit_code == 0 ? json::parse(result.output) : json(json::object());
  }

  void expect_the_undisturbed_end() {
    const ProgramResult result = program_->wait();
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_long_digest());
  }

  const TemporaryFolder folder_;
  const std::string run_ = folder_ / "run";
  std::optional<RunningProgram> program_;
};

TEST_F(SteeredRun, MakesASavepointOnRequestAndEndsAsItWouldHave) {
  start(2);

  const TemporaryFolder other;
  std::filesystem::create_directory(other / "run");
  // Three savepoints later the run deletes it, as it does with any: on a busy machine before it can be copied.
  ASSERT_TRUE(comes_true([&] {
    const ProgramResult asked = holdfast({"snapshot", run_});
    EXPECT_EQ(asked.exit_code, 0) << asked.output;
    const std::filesystem::path path = asked.output.substr(0, asked.output.find(": durable"));
    std::error_code failure;
    std::filesystem::copy_file(path, other / ("run/" + path.filename().string()), failure);
    return !failure || asked.exit_code != 0;
  }));
  expect_the_undisturbed_end();
  const ProgramResult resumed =
      run_program(built_program("digits"), digits_arguments({.replicas = 1, .options = kLong}, other));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(other).at("weights_digest"), undisturbed_long_digest());
  EXPECT_EQ(journal_of(other).at(0).at("event"), "watchdog_started");
  EXPECT_THAT(read_file(other / "run/journal.jsonl"), HasSubstr("\"resumed\""));
}

TEST_F(SteeredRun, EndsAsItWouldHaveWhenItIsScaled) {
  start(2);

  const ProgramResult grown = holdfast({"scale", run_, "4"});

  EXPECT_EQ(grown.exit_code, 0) << grown.output;
  EXPECT_TRUE(comes_true([&] {
    const json now = status();
    return now.empty() || (now.at("members").size() == 4 && now.at("members").at(3).at("stage") == "training");
  }));
  EXPECT_EQ(holdfast({"scale", run_, "1"}).exit_code, 0);
  const ProgramResult refused = holdfast({"scale", run_, "5"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("1 to 4"));
  expect_the_undisturbed_end();
}

TEST_F(SteeredRun, IsShownWhileItLivesAndToldOfAfterwards) {
  start(2);

  const ProgramResult shown = holdfast({"status", run_, "--once"});
  const int pid = status().at("members").at(1).at("pid");
  ::kill(pid, SIGKILL);
  expect_the_undisturbed_end();
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
