// Runs over two hosts, with real agents and processes: the hosts are addresses of this machine. Whatever is killed, the
// bits are those of one host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "resilience/digits_run.h"
#include "support/comes_true.h"
#include "support/free_port.h"
#include "support/program.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TwoHosts : public ::testing::Test {
 protected:
  TwoHosts() {
    std::ofstream(folder_ / "secret") << std::string(64, '5');
    std::filesystem::permissions(folder_ / "secret", std::filesystem::perms::owner_read);
  }

  // What it takes to understand a failed test.
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& [host, program] : hosts_) program->signal(SIGTERM);
    while (!hosts_.empty()) end_of(hosts_.begin()->first);
    for (const auto& [host, result] : ended_) {
      ADD_FAILURE() << "host " << host << " ended with " << result.exit_code << " and wrote:\n" << result.output;
    }
    const std::string journal = folder_ / "run/journal.jsonl";
    if (std::filesystem::exists(journal)) ADD_FAILURE() << "the journal:\n" << read_file(journal);
  }

  // `holdfast run` on a host, with variables of the environment.
  std::unique_ptr<RunningProgram> start(int host, const std::vector<std::string>& options = {},
                                        const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> all = options;
    if (std::find(all.begin(), all.end(), "--head-timeout") == all.end()) {
      all.insert(all.end(), {"--head-timeout", "1"});
    }
    return start_command(host, {"run"}, all, variables);
  }

  // `holdfast doctor --hosts` on a host.
  std::unique_ptr<RunningProgram> start_doctor(int host, const std::vector<std::string>& options = {}) const {
    return start_command(host, {"doctor", "--hosts"}, options, {});
  }

  std::unique_ptr<RunningProgram> start_command(int host, const std::vector<std::string>& command,
                                                const std::vector<std::string>& options,
                                                const std::vector<std::string>& variables) const {
    std::vector<std::string> all = variables;
    all.push_back(built_program("holdfast"));
    all.insert(all.end(), command.begin(), command.end());
    all.insert(all.end(), {"--run-dir", folder_ / "run", "--nnodes", "2", "--node-rank", std::to_string(host), "--head",
                           "127.0.0.2:" + std::to_string(port_), "--secret", folder_ / "secret"});
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", built_program("digits")});
    const std::vector<std::string> digits = digits_arguments({.options = digits_}, folder_);
    all.insert(all.end(), digits.begin(), digits.end());
    return std::make_unique<RunningProgram>("/usr/bin/env", all);
  }

  void start_both(const std::vector<std::string>& options = {"--replicas", "1"}) {
    for (int host = 0; host < 2; ++host) hosts_[host] = start(host, options);
  }

  // Waits for the end of what runs on a host.
  ProgramResult end_of(int host) {
    ended_[host] = hosts_.at(host)->wait();
    hosts_.erase(host);
    return ended_[host];
  }

  // All of a host: its agent, and with that its processes.
  void kill_host(int host) {
    hosts_[host]->signal(SIGKILL);
    EXPECT_EQ(end_of(host).exit_code, 128 + SIGKILL);
  }

  void expect_finished(int host) {
    const ProgramResult result = end_of(host);
    EXPECT_EQ(result.exit_code, 0) << "host " << host << ":\n" << result.output;
  }

  void expect_the_bits_of_one_host() const { EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest()); }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    if (!std::filesystem::exists(folder_ / "run/journal.jsonl")) return found;
    for (const Json& line : journal_of(folder_)) {
      if (line.at("event") == name) found.push_back(line);
    }
    return found;
  }

  // The numbers of members of all generations, oldest first.
  std::vector<std::size_t> generations() const {
    std::vector<std::size_t> sizes;
    if (!std::filesystem::exists(folder_ / "run/journal.jsonl")) return sizes;
    for (const Json& line : journal_of(folder_)) {
      for (const Json& action : line.value("actions", Json::array())) {
        if (action.at("action") == "open_generation") sizes.push_back(action.at("members").size());
      }
    }
    return sizes;
  }

  // What `holdfast SUBCOMMAND... RUN MORE...` writes.
  std::string command(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    arguments.push_back(folder_ / "run");
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(built_program("holdfast"), arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  }

  // A fault leaves a mark when it strikes.
  void wait_for_fault() const {
    ASSERT_TRUE(comes_true([this] { return std::filesystem::exists(folder_ / "run/faults"); }));
  }

  const TemporaryFolder folder_;
  const int port_ = free_port();
  std::map<std::string, std::string> digits_{};  // options of the program
  std::map<int, std::unique_ptr<RunningProgram>> hosts_;
  std::map<int, ProgramResult> ended_;
};

class TwoHostsWith : public TwoHosts, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Replicas, TwoHostsWith, ::testing::Values(1, 2));

TEST_P(TwoHostsWith, TrainToTheBitsOfOneHost) {
  start_both({"--replicas", std::to_string(GetParam())});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_THAT(generations(), ::testing::ElementsAre(2 * GetParam()));
}

TEST_F(TwoHosts, GoOnWhenAReplicaOfTheSecondHostIsKilled) {
  start_both({"--replicas", "1", "--inject", "rank=1,step=10,fault=kill"});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("restart").size(), 1U);
}

TEST_F(TwoHosts, GoOnWhenAReplicaOfTheFirstHostIsKilled) {
  start_both({"--replicas", "2", "--inject", "rank=0,step=10,fault=kill"});

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("restart").size(), 1U);
}

// It is killed in the middle of a step, in which its replica hangs.
TEST_F(TwoHosts, GoOnWithoutTheSecondHostWhenAllOfItIsKilled) {
  start_both({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang"});
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
  start_both({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang", "--inject",
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

// The same course as above, as the command shows it.
TEST_F(TwoHosts, AreNamedByStatusAndReport) {
  digits_ = {{"--epochs", "40"}};
  start_both({"--replicas", "1", "--hang-after", "300", "--inject", "rank=1,step=10,fault=hang", "--inject",
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
  start_both({"--replicas", "1", "--inject", "rank=0,step=3,fault=slow,factor=100,count=100000"});
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

// The head hangs in a step until it is killed. What the second host has then is in memory alone.
class TwoHostsWithoutAHead : public TwoHosts {
 protected:
  void start_and_kill_the_head(const std::string& head_timeout) {
    digits_ = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}};
    start_both({"--replicas", "1", "--head-timeout", head_timeout, "--hang-after", "300", "--inject",
                "rank=0,step=10,fault=hang"});
    wait_for_fault();
    kill_host(0);
  }

  void expect_that_the_second_host_saves() {
    const ProgramResult second = end_of(1);
    EXPECT_EQ(second.exit_code, 75) << second.output;
    EXPECT_THAT(second.output, HasSubstr("the newest state in memory was saved as"));
    start_both();
    expect_finished(1);
    expect_finished(0);
    expect_the_bits_of_one_host();
    EXPECT_FALSE(events("resumed").empty());
  }
};

TEST_F(TwoHostsWithoutAHead, SaveWhatIsLeftAfterTheTimeForIt) {
  start_and_kill_the_head("1");

  expect_that_the_second_host_saves();
}

// As Slurm does, which asks all processes of a job to end when one of its hosts is gone.
TEST_F(TwoHostsWithoutAHead, SaveWhatIsLeftWhenTheyAreAskedToLeave) {
  start_and_kill_the_head("300");

  hosts_[1]->signal(SIGTERM);

  expect_that_the_second_host_saves();
}

// The newest state is in the process that waits, and in no memory of its agent until it has waited for a while.
TEST_F(TwoHosts, KeepTheNewestStateOfAProcessThatWaitsForALostHead) {
  digits_ = {{"--memory-snapshot-every", "100000"}, {"--save-every", "0"}};
  start_both(
      {"--replicas", "1", "--head-timeout", "300", "--hang-after", "300", "--inject", "rank=0,step=10,fault=hang"});
  wait_for_fault();
  kill_host(0);

  EXPECT_TRUE(hosts_[1]->writes("the state of step 10 is kept in memory"));
  hosts_[1]->signal(SIGTERM);

  const ProgramResult second = end_of(1);
  EXPECT_EQ(second.exit_code, 75) << second.output;
  EXPECT_THAT(second.output, HasSubstr("savepoint-0000000010.h5"));
  start_both();
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
  const char* const before = std::getenv("ASAN_OPTIONS");
  const std::string asan = before == nullptr ? "" : std::string(before) + ":";
  hosts_[0] = start(0, {"--replicas", "1", "--inject", "rank=1,step=10,fault=kill"},
                    {"LD_PRELOAD=" + built_program("libsilent_folder.so"), "SILENT_WHILE=" + silence,
                     "ASAN_OPTIONS=" + asan + "verify_asan_link_order=0"});
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
  start_both({"--replicas", "1", "--inject", "rank=0,step=3,fault=slow,factor=100,count=100000"});
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
