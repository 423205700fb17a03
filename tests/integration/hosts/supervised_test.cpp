// supervise() on several hosts: the program itself is started on each, and its environment says which host it is on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "integration/hosts/hosts_run.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

class TwoHostsWithoutACommand : public HostsRun {
 protected:
  TwoHostsWithoutACommand() : HostsRun("127.0.0.2") {}

  std::unique_ptr<RunningProgram> start_program(int, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    return std::make_unique<RunningProgram>(path, arguments);
  }

  void kill_processes(int host) override { hosts_[host]->signal(SIGKILL); }

  std::unique_ptr<RunningProgram> start_itself(int host, const std::vector<std::string>& command,
                                               std::vector<std::string> all = {}) const {
    all.insert(all.end(), {"HOLDFAST_NNODES=2", "HOLDFAST_NODE_RANK=" + std::to_string(host),
                           "HOLDFAST_HEAD=" + head_ + ":" + std::to_string(port_), "HOLDFAST_SECRET_FILE=" + secret_});
    all.insert(all.end(), command.begin(), command.end());
    return start_program(host, "/usr/bin/env", all);
  }

  std::unique_ptr<RunningProgram> start_digits(int host, const DigitsRun& run,
                                               const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> command = {built_program("digits")};
    const std::vector<std::string> arguments = digits_arguments(run, folder_);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start_itself(host, command, variables);
  }

  void start_both(const DigitsRun& run) {
    for (const int host : {0, 1}) hosts_[host] = start_digits(host, run);
  }
};

class TwoHostsWithoutACommandWith : public TwoHostsWithoutACommand, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Replicas, TwoHostsWithoutACommandWith, ::testing::Values(1, 2));

TEST_P(TwoHostsWithoutACommandWith, TrainToTheBitsOfOneHost) {
  start_both({.replicas = GetParam()});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_THAT(generations(), ::testing::ElementsAre(2 * GetParam()));
}

TEST_F(TwoHostsWithoutACommand, GoOnWithoutTheSecondOneWhenAllOfItIsKilled) {
  start_both({.replicas = 1, .faults = {"rank=1,step=10,fault=hang"}, .options = {{"--hang-after", "300"}}});
  wait_for_fault();

  kill_host(1);

  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("host_lost").size(), 1U);
}

// A number of shards that is not asked for is that of all replicas.
TEST_F(TwoHostsWithoutACommand, HaveAShardForEachReplicaOfBoth) {
  start_both({.replicas = 1, .options = {{"--shards", "0"}}});

  expect_finished(1);
  expect_finished(0);
  EXPECT_EQ(Json::parse(read_file(folder_ / "run/run.json")).at("shards"), 2);
}

TEST_F(TwoHostsWithoutACommand, SaveWhatTheSecondOneHasWhenTheHeadIsLost) {
  const std::map<std::string, std::string> options = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}};
  DigitsRun run{.replicas = 1, .faults = {"rank=0,step=10,fault=hang"}, .options = options};
  run.options["--hang-after"] = "300";
  start_both(run);
  wait_for_fault();
  kill_host(0);

  hosts_[1]->signal(SIGTERM);

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 75) << second.output;
  EXPECT_THAT(second.output, HasSubstr("the newest state in memory was saved as"));
  start_both({.replicas = 1, .options = options});
  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_FALSE(events("resumed").empty());
}

// The first host begins anew for both, and the token counts once.
TEST_F(TwoHostsWithoutACommand, BeginAnewWhereTheyAreAskedTo) {
  for (const std::string token : {"one", "two", "two"}) {
    for (const int host : {0, 1}) hosts_[host] = start_digits(host, {.replicas = 1}, {"HOLDFAST_START=fresh:" + token});
    expect_finished(1);
    expect_finished(0);
  }

  EXPECT_EQ(events("watchdog_started").size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run.1"));
}

TEST_F(TwoHostsWithoutACommand, HaveOneRunInAProgram) {
  const std::vector<std::string> twice = {built_program("calls_program"), "twice", folder_ / "run"};
  for (const int host : {0, 1}) hosts_[host] = start_itself(host, twice);

  for (const int host : {1, 0}) {
    const std::string output = end_of(host).output;
    EXPECT_THAT(output, HasSubstr("a second time, for"));
    EXPECT_THAT(output, HasSubstr("codes 0 1"));
  }
}

// What nothing but the launcher says is not overlooked: each host would train by itself.
TEST_F(TwoHostsWithoutACommand, AreRefusedWithoutASecret) {
  const ProgramResult result =
      run_program("/usr/bin/env", {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=127.0.0.2",
                                   built_program("digits"), "--drawn", "300", "--run-dir", folder_ / "run"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("HOLDFAST_SECRET_FILE"));
}

}  // namespace
}  // namespace holdfast
