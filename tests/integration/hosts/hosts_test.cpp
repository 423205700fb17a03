// Runs over two hosts, with real agents and processes: the hosts are addresses of this machine. Whatever is killed, the
// bits are those of one host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "integration/hosts/hosts_run.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TwoHosts : public HostsRun {
 protected:
  TwoHosts() : HostsRun("127.0.0.2") {}

  std::unique_ptr<RunningProgram> start_program(int, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    return std::make_unique<RunningProgram>(path, arguments);
  }

  // The agent takes its processes along.
  void kill_processes(int host) override { hosts_[host]->signal(SIGKILL); }
};

class TwoHostsWith : public TwoHosts, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Replicas, TwoHostsWith, ::testing::Values(1, 2));

TEST_P(TwoHostsWith, TrainToTheBitsOfOneHost) {
  start_all({"--replicas", std::to_string(GetParam())});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_THAT(generations(), ::testing::ElementsAre(2 * GetParam()));
}

// Each rank has several sums in the shard tree then, and the ranks connect twice in a generation.
TEST_F(TwoHosts, AddThreeBatchesToTheBitsOfOneHostWhenAReplicaIsKilled) {
  digits_ = {{"--accumulate", "3"}, {"--epochs", "6"}};
  start_all({"--replicas", "2", "--inject", "rank=3,step=5,fault=kill"});

  expect_finished(1);
  expect_finished(0);

  EXPECT_EQ(report_of(folder_).at("weights_digest"), completed({.options = digits_}).at("weights_digest"));
  EXPECT_EQ(events("restart").size(), 1U);
}

TEST_F(TwoHosts, GoOnWhenAReplicaOfTheSecondHostIsKilled) {
  start_all({"--replicas", "1", "--inject", "rank=1,step=10,fault=kill"});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("restart").size(), 1U);
}

TEST_F(TwoHosts, GoOnWhenAReplicaOfTheFirstHostIsKilled) {
  start_all({"--replicas", "2", "--inject", "rank=0,step=10,fault=kill"});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("restart").size(), 1U);
}

// It is killed in the middle of a step, in which its replica hangs.
TEST_F(TwoHosts, GoOnWithoutTheSecondHostWhenAllOfItIsKilled) {
  start_all({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang"});
  wait_for_fault();

  kill_host(1);

  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("host_lost").size(), 1U);
  EXPECT_EQ(generations().back(), 1U);
}

// The first host is slow until the second one is back, so that there is something left to do.
TEST_F(TwoHosts, GoOnTogetherWhenTheSecondHostComesBack) {
  digits_ = {{"--epochs", "40"}};
  start_all({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang", "--inject",
             "rank=0,step=11,fault=slow,factor=100,count=100000"});
  wait_for_fault();
  kill_host(1);
  ASSERT_TRUE(comes_true([this] { return generations().size() >= 2; }));

  hosts_[1] = start(1, {"--replicas", "1"});
  ASSERT_TRUE(comes_true([this] { return generations().size() >= 3; }));

  EXPECT_EQ(events("host_returned").size(), 1U);
  EXPECT_EQ(generations().back(), 2U);
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
}

// The second host has the only state after ten steps: the run writes no savepoint before its end, and the replica of
// the first host hangs in the eleventh step.
class TwoHostsWhoseHeadDied : public TwoHosts {
 protected:
  void start_and_kill_the_head(const std::string& patience) {
    digits_["--save-every"] = "0";
    start_all({"--replicas", "1", "--head-timeout", patience, "--hang-after", "300", "--inject",
               "rank=0,step=10,fault=hang"});
    wait_for_fault();
    wait_until_both_are_at(10);
    kill_host(0);
  }
  void expect_that_the_second_host_saves() {
    const ProgramResult second = end_of(1);
    EXPECT_EQ(second.exit_code, 75) << second.output;
    EXPECT_THAT(second.output, HasSubstr("the newest state in memory was saved as"));
    EXPECT_TRUE(has_state_of_step_ten()) << second.output;
    start_all();
    expect_finished(1);
    expect_finished(0);
    expect_the_bits_of_one_host();
    ASSERT_EQ(events("resumed").size(), 1U);
    EXPECT_EQ(events("resumed").back().at("details").at("step"), 10);
  }
  bool has_state_of_step_ten() const { return std::filesystem::exists(folder_ / "run/savepoint-0000000010.h5"); }
};

TEST_F(TwoHostsWhoseHeadDied, GoOnWhereTheyWereWhenItStartsAgain) {
  start_and_kill_the_head("60");

  hosts_[0] = start(0, {"--replicas", "1", "--head-timeout", "60"});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  ASSERT_EQ(events("resumed").size(), 1U);
  EXPECT_EQ(events("resumed").back().at("details").at("step"), 10);
}

TEST_F(TwoHostsWhoseHeadDied, SaveWhatTheyHaveWhenItComesBackWithAnotherCommand) {
  start_and_kill_the_head("60");

  digits_["--epochs"] = "40";
  hosts_[0] = start(0, {"--replicas", "1"});

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, HasSubstr("refuses this host: the command is"));
  EXPECT_TRUE(has_state_of_step_ten()) << second.output;
  hosts_[0]->signal(SIGTERM);
  EXPECT_THAT(end_of(0).output, AllOf(HasSubstr("waiting for 1 other host"), HasSubstr("was refused: the command is")));
}

TEST_F(TwoHostsWhoseHeadDied, SaveWhatIsLeftAfterTheTimeForIt) {
  start_and_kill_the_head("1");

  expect_that_the_second_host_saves();
}

// As Slurm does with the hosts that are left, when one of a job's hosts is gone.
TEST_F(TwoHostsWhoseHeadDied, SaveWhatIsLeftWhenTheyAreAskedToLeaveAtThatMoment) {
  start_and_kill_the_head("300");

  hosts_[1]->signal(SIGTERM);

  expect_that_the_second_host_saves();
}

// A savepoint of theirs would be taken for one of the other run.
TEST_F(TwoHostsWhoseHeadDied, LeaveNothingInARunThatWasBegunAnewThere) {
  start_and_kill_the_head("1");
  std::filesystem::rename(folder_ / "run", folder_ / "run.1");
  std::filesystem::create_directory(folder_ / "run");

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 75);
  EXPECT_THAT(second.output, HasSubstr("of step 10, is not saved, because another run has begun in"));
  EXPECT_FALSE(has_state_of_step_ten());
}

// The same course as above, as the command shows it.
TEST_F(TwoHosts, AreNamedByStatusAndReport) {
  digits_ = {{"--epochs", "40"}};
  start_all({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang", "--inject",
             "rank=0,step=11,fault=slow,factor=100,count=100000"});
  wait_for_fault();

  const Json both = Json::parse(command({"status", "--json"}));
  kill_host(1);
  ASSERT_TRUE(comes_true([this] { return generations().size() >= 2; }));
  const std::string with_one = command({"status", "--once"});
  hosts_[1] = start(1, {"--replicas", "1"});
  ASSERT_TRUE(comes_true([this] { return generations().size() >= 3; }));
  const std::string report = command({"report"});

  EXPECT_EQ(both.at("hosts").at(0).at("address"), "127.0.0.2");
  EXPECT_EQ(both.at("hosts").at(1).at("stage"), "there");
  EXPECT_EQ(both.at("hosts").at(1).at("address"), "127.0.0.1");
  ASSERT_EQ(both.at("members").size(), 2U);
  EXPECT_NE(both.at("members").at(0).at("host"), both.at("members").at(1).at("host"));
  EXPECT_THAT(with_one, ContainsRegex("   1  127.0.0.1  lost [0-9.]+ s ago: the connection was closed"));
  EXPECT_THAT(report, HasSubstr("started with 2 replicas on 2 hosts"));
  EXPECT_THAT(report,
              ContainsRegex("host 1 was lost: the connection was closed.*\n    .* later it was part of the run"));
  EXPECT_THAT(report, ContainsRegex("1\\. .* replica 1 \\(process [01], pid [0-9]+ on host 1\\) of generation 0"));
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
}

TEST_F(TwoHosts, ScaleAndSaveOnRequest) {
  digits_ = {{"--epochs", "40"}, {"--save-every", "0"}};
  start_all({"--replicas", "1", "--inject", "rank=0,step=3,fault=slow,factor=100,count=100000"});
  wait_for_fault();

  EXPECT_THAT(command({"snapshot"}), HasSubstr("durable"));
  command({"scale"}, {"1"});
  ASSERT_TRUE(comes_true([this] { return generations().size() == 2; }));
  command({"scale"}, {"2"});
  ASSERT_TRUE(comes_true([this] { return generations().size() == 3; }));

  EXPECT_THAT(generations(), ::testing::ElementsAre(2, 1, 2));
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
}

// The newest state is in the process that waits, and in no memory of its agent until it has waited for a while.
TEST_F(TwoHosts, KeepTheNewestStateOfAProcessThatWaitsForALostHead) {
  digits_ = {{"--memory-snapshot-every", "100000"}, {"--save-every", "0"}};
  start_all(
      {"--replicas", "1", "--head-timeout", "300", "--hang-after", "300", "--inject", "rank=0,step=10,fault=hang"});
  wait_for_fault();
  kill_host(0);

  EXPECT_TRUE(hosts_[1]->writes("the state of step 10 is kept in memory"));
  hosts_[1]->signal(SIGTERM);

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 75) << second.output;
  EXPECT_THAT(second.output, HasSubstr("savepoint-0000000010.h5"));
  start_all();
  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  ASSERT_EQ(events("resumed").size(), 1U);
  EXPECT_EQ(events("resumed").front().at("details").at("step"), 10);
}

// The shared folder takes no line of the journal from the first one on. The second host leaves when the run is over,
// for which it must not wait for the journal.
TEST_F(TwoHosts, TrainWhileTheJournalCannotBeWritten) {
  const std::string silence = folder_ / "silence";
  std::ofstream(silence) << "\n";
  std::vector<std::string> variables = preloading("libsilent_folder.so");
  variables.push_back("SILENT_WHILE=" + silence);
  hosts_[0] = start(0, {"--replicas", "1", "--inject", "rank=1,step=10,fault=kill"}, variables);
  hosts_[1] = start(1, {"--replicas", "1"});

  expect_finished(1);
  EXPECT_EQ(read_file(folder_ / "run/journal.jsonl"), "");
  std::filesystem::remove(silence);

  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("restart").size(), 1U);
  EXPECT_EQ(events("host_lost").size(), 0U);
  EXPECT_EQ(journal_of(folder_).back().at("event"), "run_ended");
}

TEST_F(TwoHosts, LeaveTheRunOneByOne) {
  digits_ = {{"--epochs", "40"}};
  start_all({"--replicas", "1", "--inject", "rank=0,step=3,fault=slow,factor=100,count=100000"});
  wait_for_fault();

  hosts_[1]->signal(SIGTERM);

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 75) << second.output;
  EXPECT_THAT(second.output, HasSubstr("has left the run as asked"));
  ASSERT_TRUE(comes_true([this] { return generations().size() == 2; }));
  EXPECT_EQ(generations().back(), 1U);
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
}

TEST_F(TwoHosts, AreRefusedWithAnotherCommand) {
  hosts_[0] = start(0, {"--replicas", "1"});
  digits_ = {{"--seed", "12"}};
  hosts_[1] = start(1, {"--replicas", "1"});

  const ProgramResult second = end_of(1);

  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, HasSubstr("the bits of the run depend on it"));
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
}

TEST_F(TwoHosts, AreWellByTheirDoctor) {
  for (int host = 0; host < 2; ++host) hosts_[host] = start_doctor(host);

  const ProgramResult second = end_of(1);
  const ProgramResult first = end_of(0);

  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(first.output, HasSubstr("a run over these 2 hosts can begin"));
  EXPECT_THAT(first.output, ContainsRegex("1  connection to host 0 +works"));
  EXPECT_THAT(first.output, ContainsRegex("1  program +the file of host 0"));
  EXPECT_THAT(second.output, HasSubstr("a run over these 2 hosts can begin"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(TwoHosts, AreToldByTheirDoctorWhatDiffers) {
  hosts_[0] = start_doctor(0, {"--replicas", "1"});
  digits_ = {{"--seed", "12"}};
  hosts_[1] = start_doctor(1, {"--replicas", "2"});

  const ProgramResult second = end_of(1);
  const ProgramResult first = end_of(0);

  EXPECT_EQ(first.exit_code, 1) << first.output;
  EXPECT_EQ(second.exit_code, 1) << second.output;
  EXPECT_THAT(first.output, HasSubstr("error: host 1: replicas: it would start 2, and host 0 would start 1"));
  EXPECT_THAT(first.output, HasSubstr("error: host 1: command: it is "));
  EXPECT_THAT(second.output, HasSubstr("2 problems found on 2 hosts"));
}

TEST_F(TwoHosts, AreMissedByTheirDoctor) {
  hosts_[0] = start_doctor(0, {"--join-timeout", "0.1"});

  const ProgramResult first = end_of(0);

  EXPECT_EQ(first.exit_code, 1);
  EXPECT_THAT(first.output, HasSubstr("error: host 1: meeting: it has not come within 0.1 s"));
  EXPECT_THAT(first.output, HasSubstr("start the same command there with --node-rank 1"));
}

}  // namespace
}  // namespace holdfast
