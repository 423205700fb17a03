// Hosts that share no folder: each has a run directory of its own, with its own savepoints. A later start goes on from
// the newest of all hosts.

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

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HostsWithFolders : public HostsRun {
 protected:
  HostsWithFolders() : HostsRun("127.0.0.2") {}

  std::string run_directory(int host) const override { return folder_ / (host == 0 ? "run" : "disk1/run"); }

  std::unique_ptr<RunningProgram> start_program(int host, const std::string& path,
                                                const std::vector<std::string>& arguments) const override {
    if (host != 1 || !is_disk_small_) return std::make_unique<RunningProgram>(path, arguments);
    std::vector<std::string> all = {
        "-m", "/bin/sh", "-c", R"(mount -t tmpfs -o size=1m none "$0" && exec "$@")", folder_ / "disk1", path};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return std::make_unique<RunningProgram>("/usr/bin/unshare", all);
  }

  // The agent takes its processes along.
  void kill_processes(int host) override { hosts_[host]->signal(SIGKILL); }

  std::unique_ptr<RunningProgram> start_host(int host, std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--separate-run-dirs", "--replicas", "1", "--hang-after", "300"});
    return start(host, options);
  }
  void start_both(const std::vector<std::string>& options = {}) {
    for (int host = 0; host < 2; ++host) hosts_[host] = start_host(host, options);
  }
  // The replica of host 0 hangs in the eleventh step, and that of host 1 waits for it.
  void start_until_step_ten(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--inject", "rank=0,step=10,fault=hang"});
    start_both(options);
    wait_for_fault();
    wait_until_both_are_at(10);
  }

  // Host 1 saves its newest state then.
  void end_both_by_killing_the_first() {
    kill_host(0);
    EXPECT_EQ(end_of(1).exit_code, 75);
  }

  std::vector<std::string> savepoints_of(int host) const {
    std::vector<std::string> names;
    if (!fs::exists(run_directory(host))) return names;
    for (const auto& entry : fs::directory_iterator(run_directory(host))) {
      if (entry.path().extension() == ".h5") names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  void expect_to_go_on_from_step_ten() {
    expect_finished(1);
    expect_finished(0);
    expect_the_bits_of_one_host();
    ASSERT_EQ(events("resumed").size(), 1U);
    EXPECT_EQ(events("resumed").back().at("details").at("step"), 10);
  }

  bool is_disk_small_ = false;  // that of host 1

  void expect_finished_with_the_same_savepoints() {
    expect_finished(1);
    expect_finished(0);
    expect_the_bits_of_one_host();
    ASSERT_FALSE(savepoints_of(0).empty());
    EXPECT_EQ(savepoints_of(1), savepoints_of(0));
    for (const std::string& name : savepoints_of(0)) {
      const ProgramResult difference = run_program(
          built_program("holdfast"), {"diff", run_directory(0) + "/" + name, run_directory(1) + "/" + name});
      EXPECT_EQ(difference.exit_code, 0) << difference.output;
    }
  }
};

TEST_F(HostsWithFolders, TrainToTheBitsOfOneHostAndEachHasTheSavepoints) {
  start_both();

  expect_finished_with_the_same_savepoints();
  EXPECT_THAT(generations(), ElementsAre(2));
  EXPECT_EQ(events("savepoint").size(), events("savepoint_started").size());
  EXPECT_THAT(run_program(built_program("holdfast"), {"report", run_directory(1)}).output,
              HasSubstr("a run over several hosts has it on its first host"));
  EXPECT_TRUE(fs::exists(run_directory(1) + "/run.json"));
  EXPECT_TRUE(fs::exists(run_directory(1) + "/arithmetic.txt"));
}

// Host 0 has no savepoint of step 10.
TEST_F(HostsWithFolders, GoOnFromTheNewestSavepointOfAllHosts) {
  start_until_step_ten();
  kill_host(0);
  const ProgramResult second = end_of(1);
  ASSERT_EQ(second.exit_code, 75) << second.output;
  EXPECT_THAT(savepoints_of(0), ::testing::Not(Contains("savepoint-0000000010.h5")));
  EXPECT_THAT(savepoints_of(1), Contains("savepoint-0000000010.h5")) << second.output;

  start_both();
  expect_finished(1);
  expect_finished(0);

  expect_the_bits_of_one_host();
  ASSERT_EQ(events("resumed").size(), 1U);
  EXPECT_EQ(events("resumed").back().at("details").at("path"), run_directory(1) + "/savepoint-0000000010.h5");
}

TEST_F(HostsWithFolders, BringAHostWithANewDiskToTheStateOfTheOthers) {
  start_until_step_ten();
  end_both_by_killing_the_first();
  fs::remove(run_directory(1) + "/savepoint-0000000010.h5");
  const std::vector<std::string> before = savepoints_of(0);
  fs::remove_all(run_directory(1));

  start_both();
  expect_finished(1);
  expect_finished(0);

  expect_the_bits_of_one_host();
  ASSERT_FALSE(before.empty());
  EXPECT_THAT(events("resumed").back().at("details").at("path").get<std::string>(), EndsWith(before.back()));
  EXPECT_EQ(savepoints_of(1).back(), savepoints_of(0).back());
}

TEST_F(HostsWithFolders, GoOnWhereTheFirstHostHasLostItsFolder) {
  start_until_step_ten();
  end_both_by_killing_the_first();
  fs::remove_all(run_directory(0));

  start_both();
  expect_to_go_on_from_step_ten();
}

// As a pod that is replaced, with an empty disk.
TEST_F(HostsWithFolders, GoOnWhereTheFirstHostIsReplacedWhileTheOtherOneWaits) {
  start_until_step_ten({"--head-timeout", "60"});
  kill_host(0);
  fs::remove_all(run_directory(0));

  hosts_[0] = start_host(0, {"--head-timeout", "60"});
  expect_to_go_on_from_step_ten();
}

// Which of the two is wanted nobody says, and nothing may be lost.
TEST_F(HostsWithFolders, AreRefusedWhereTheyHoldSavepointsOfTwoRuns) {
  for (int host = 0; host < 2; ++host) {
    fs::create_directories(run_directory(host) + "/hosts");
    std::ofstream(run_directory(host) + "/hosts/run") << "run " << host;
    std::ofstream(run_directory(host) + "/savepoint-0000000004.h5") << "whatever it holds";
  }

  start_both();
  const ProgramResult second = end_of(1);
  hosts_[0]->signal(SIGTERM);
  end_of(0);

  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, AllOf(HasSubstr("holds another run than that of the head"),
                                   HasSubstr("copy this folder to the head's host")));
  EXPECT_EQ(read_file(run_directory(1) + "/savepoint-0000000004.h5"), "whatever it holds");
}

TEST_F(HostsWithFolders, PutTheEarlierRunAsideOnEachHostWhereTheFirstOneBeginsAnew) {
  start_until_step_ten();
  end_both_by_killing_the_first();
  const std::vector<std::string> before = savepoints_of(1);

  hosts_[0] = start_host(0, {"--fresh"});
  hosts_[1] = start_host(1);

  expect_finished_with_the_same_savepoints();
  EXPECT_THAT(events("resumed"), IsEmpty());
  EXPECT_TRUE(fs::exists(folder_ / "run.1/journal.jsonl"));
  for (const std::string& name : before) EXPECT_TRUE(fs::exists(folder_ / ("disk1/run.1/" + name))) << name;
}

// A scheduler that starts a job again repeats what it was started with.
TEST_F(HostsWithFolders, GoOnWhereTheOccasionToBeginAnewIsTheSame) {
  start_until_step_ten({"--fresh=MONDAY"});
  end_both_by_killing_the_first();
  fs::remove_all(run_directory(0));

  start_both({"--fresh=MONDAY"});
  expect_to_go_on_from_step_ten();
}

// Training is over, so no later savepoint would come.
TEST_F(HostsWithFolders, BringANewDiskToTheStateOfAFinishedRun) {
  start_both();
  expect_finished(1);
  expect_finished(0);
  fs::remove_all(run_directory(1));

  start_both();
  expect_finished(1);
  expect_finished(0);
  EXPECT_THAT(savepoints_of(1), Contains("savepoint-0000000027.h5"));
  fs::remove_all(run_directory(0));
  start_both();

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_EQ(events("resumed").back().at("details").at("step"), 27);
}

// The program asks for as many shards as there are replicas, and their number is another one now.
TEST_F(HostsWithFolders, GiveANewDiskTheChoicesOfTheRun) {
  digits_ = {{"--shards", "0"}};
  const auto start_with = [this](const std::string& replicas) {
    for (int host = 0; host < 2; ++host) {
      hosts_[host] = start(host, {"--separate-run-dirs", "--replicas", replicas, "--hang-after", "300", "--inject",
                                  "rank=0,step=10,fault=slow,factor=100,count=1000"});
    }
  };
  start_with("2");
  ASSERT_TRUE(comes_true([this] { return !savepoints_of(0).empty() && fs::exists(folder_ / "run/faults"); }));
  hosts_[0]->signal(SIGTERM);
  end_of(0);
  end_of(1);
  fs::remove_all(run_directory(1));

  for (int host = 0; host < 2; ++host) hosts_[host] = start_host(host);
  expect_finished(1);
  expect_finished(0);

  // Four shards, as the run began with.
  expect_the_bits_of_one_host();
}

// What the healthy host has is whole, whatever becomes of the other one.
TEST_F(HostsWithFolders, FinishWhereTheDiskOfOneIsFull) {
  if (run_program("/usr/bin/unshare", {"-m", "/usr/bin/true"}).exit_code != 0) {
    if (are_hosts_required()) FAIL() << "this user may not mount folders";
    GTEST_SKIP() << "this user may not mount folders";
  }
  fs::create_directories(folder_ / "disk1");
  hosts_[0] = start_host(0);
  is_disk_small_ = true;
  hosts_[1] = start_host(1);

  EXPECT_THAT(end_of(1).output, HasSubstr("the last savepoint of this host failed"));
  expect_finished(0);
  expect_the_bits_of_one_host();
  EXPECT_THAT(savepoints_of(0), Contains("savepoint-0000000027.h5"));
}

TEST_F(HostsWithFolders, SaveOnEachHostWhereItIsAskedForAndAtAStop) {
  digits_ = {{"--epochs", "40"}, {"--save-every", "0"}};
  start_both({"--inject", "rank=0,step=3,fault=slow,factor=100,count=100000"});
  wait_for_fault();

  EXPECT_THAT(command({"snapshot"}), HasSubstr("durable"));
  EXPECT_TRUE(comes_true([this] { return savepoints_of(1) == savepoints_of(0); }));
  EXPECT_EQ(savepoints_of(0).size(), 1U);
  hosts_[0]->signal(SIGTERM);

  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
  EXPECT_EQ(savepoints_of(1), savepoints_of(0));
}

// Slow after the death, so that there is something left to do when the host has a replica again.
TEST_F(HostsWithFolders, SaveAgainOnAHostThatHadNoReplicaForAWhile) {
  digits_ = {{"--epochs", "40"}};
  start_both({"--inject", "rank=1,step=6,fault=kill", "--inject", "rank=0,step=6,fault=slow,factor=100,count=100000"});
  ASSERT_TRUE(comes_true([this] { return generations().size() == 3; }));
  EXPECT_THAT(generations(), ElementsAre(2, 1, 2));

  hosts_[0]->signal(SIGTERM);

  EXPECT_EQ(end_of(0).exit_code, 75);
  EXPECT_EQ(end_of(1).exit_code, 75);
  EXPECT_EQ(savepoints_of(1).back(), savepoints_of(0).back());
}

TEST_F(HostsWithFolders, GoOnForMoreEpochsFromTheSavepointOfEitherHost) {
  start_both();
  expect_finished(1);
  expect_finished(0);
  fs::remove(run_directory(0) + "/savepoint-0000000027.h5");

  digits_ = {{"--epochs", "4"}};
  start_both();
  expect_finished(1);
  expect_finished(0);

  const Json undisturbed = completed({.replicas = 1, .options = {{"--epochs", "4"}}});
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed.at("weights_digest"));
  EXPECT_EQ(events("resumed").back().at("details").at("step"), 27);
}

TEST_F(HostsWithFolders, AreRefusedWhereOneOfThemSharesItsFolder) {
  hosts_[0] = start_host(0);
  hosts_[1] = start(1, {"--replicas", "1", "--hang-after", "300"});

  const ProgramResult second = end_of(1);

  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.output, HasSubstr("give --separate-run-dirs on all hosts or on none"));
  hosts_[0]->signal(SIGTERM);
  EXPECT_EQ(end_of(0).exit_code, 75);
}

TEST_F(HostsWithFolders, AreWellByTheirDoctor) {
  for (int host = 0; host < 2; ++host) hosts_[host] = start_doctor(host, {"--separate-run-dirs"});

  const ProgramResult second = end_of(1);
  const ProgramResult first = end_of(0);

  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(first.output, HasSubstr(run_directory(1) + " of its own"));
  EXPECT_FALSE(fs::exists(run_directory(0)));
  EXPECT_FALSE(fs::exists(run_directory(1)));
}

// The program names one folder, which is another one on each host: a mount of each host alone.
TEST_F(HostsWithFolders, TrainWithAProgramThatStartsItself) {
  if (run_program("/usr/bin/unshare", {"-m", "/usr/bin/true"}).exit_code != 0) {
    if (are_hosts_required()) FAIL() << "this user may not mount folders";
    GTEST_SKIP() << "this user may not mount folders";
  }
  const std::string shown = folder_ / "shown";
  fs::create_directory(shown);
  const auto disk = [this](int host) { return folder_ / ("disk" + std::to_string(host)); };
  for (int host = 0; host < 2; ++host) {
    fs::create_directory(disk(host));
    std::vector<std::string> all = {"-m",
                                    "/bin/sh",
                                    "-c",
                                    R"(mount --bind "$0" "$1" && shift && exec "$@")",
                                    disk(host),
                                    shown,
                                    "/usr/bin/env",
                                    "HOLDFAST_NNODES=2",
                                    "HOLDFAST_NODE_RANK=" + std::to_string(host),
                                    "HOLDFAST_HEAD=" + head_ + ":" + std::to_string(port_),
                                    "HOLDFAST_SECRET_FILE=" + secret_,
                                    "HOLDFAST_SEPARATE_RUN_DIRS=1",
                                    built_program("digits")};
    const std::vector<std::string> digits =
        digits_arguments({.replicas = 1, .options = {{"--run-dir", shown + "/run"}}}, folder_);
    all.insert(all.end(), digits.begin(), digits.end());
    hosts_[host] = start_program(host, "/usr/bin/unshare", all);
  }

  expect_finished(1);
  expect_finished(0);
  expect_the_bits_of_one_host();
  for (int host = 0; host < 2; ++host) {
    EXPECT_TRUE(fs::exists(disk(host) + "/run/savepoint-0000000027.h5"));
    EXPECT_TRUE(fs::exists(disk(host) + "/run/run.json"));
  }
}

}  // namespace
}  // namespace holdfast
