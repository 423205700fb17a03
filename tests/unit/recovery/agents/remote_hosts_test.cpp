// What the head learns of its other hosts: who is there for the first time, who is lost, fenced, back, and leaving.

#include "agents/remote_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "agents/agent.h"
#include "agents/folder_of_run.h"
#include "agents/hosts_folder.h"
#include "channel/messages.h"
#include "holdfast/recovery/watchdog.h"
#include "hosts/local_host.h"
#include "support/temporary_folder.h"
#include "unit/recovery/support/loopback.h"
#include "unit/recovery/support/played_hosts.h"

namespace holdfast::recovery {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HeadOfHosts : public ::testing::Test {
 protected:
  struct Before {
    bool is_begun_anew = false;
    bool has_savepoints = false;
  };
  explicit HeadOfHosts(const HostTimes& times = kPatientTimes) : HeadOfHosts(times, {}) {}
  HeadOfHosts(const HostTimes& times, const Before& before) : times_(times) {
    std::filesystem::create_directories(folder_ / "run");
    if (before.has_savepoints) std::ofstream(folder_ / "run/savepoint-0000000004.h5") << "whatever it holds";
    head_ = std::make_unique<RemoteHosts>(
        HeadOptions{.head = {"127.0.0.2", 0},
                    .introduction = introduction_of(0),
                    .limits = {.times = times_},
                    .folder = std::make_shared<HeadFolder>(folder_ / "run", before.is_begun_anew, "")},
        secret_of(1));
    head_->open(
        loopback_.io,
        {.on_joined = [this](int host) { heard_.push_back("joined " + std::to_string(host)); },
         .on_lost = [this](int host, const std::string&) { heard_.push_back("lost " + std::to_string(host)); },
         .on_fence_passed = [this](int host) { heard_.push_back("fenced " + std::to_string(host)); },
         .on_returned = [this](int host, const std::vector<int>&,
                               const std::vector<std::int64_t>&) { heard_.push_back("back " + std::to_string(host)); },
         .on_leaving =
             [this](int host, int signal) {
               heard_.push_back("leaving " + std::to_string(host) + " by " + std::to_string(signal));
             }});
  }

  ~HeadOfHosts() override {
    agent_.reset();
    head_.reset();
    loopback_.io.restart();
    loopback_.io.poll();
  }

  void start_agent(Introduction introduction, const AgentService::Folder& folder) {
    agent_ =
        std::make_unique<Agent>(loopback_.io,
                                AgentOptions{.head = {"127.0.0.2", head_->port()},
                                             .introduction = std::move(introduction),
                                             .limits = {.times = times_},
                                             .join_timeout = kSurely,
                                             .patience = kSurely,
                                             .folder = folder},
                                secret_of(1), local_host(loopback_.io, std::make_unique<PlayedStarter>(), {}), fence_,
                                Agent::Handlers{.on_over = [this](const Agent::End& end) { ends_.push_back(end); }});
  }
  void start_agent(int host) {
    Introduction introduction = introduction_of(host);
    introduction.port = 41234;
    start_agent(std::move(introduction), {.path = folder_ / "run"});
  }

  void wait_for(const std::string& what) {
    loopback_.run_until([&] { return !heard_.empty() && heard_.back() == what; }, what);
  }

  const HostTimes times_;
  const TemporaryFolder folder_;
  Loopback loopback_;
  Fence fence_;
  std::unique_ptr<RemoteHosts> head_;
  std::unique_ptr<Agent> agent_;
  std::vector<std::string> heard_;
  std::vector<Agent::End> ends_;
};

TEST_F(HeadOfHosts, HearsOfAHostThatJoinsIsLostAndComesBack) {
  start_agent(2);
  wait_for("joined 2");
  EXPECT_EQ(head_->links_of(2, 5), (HostAddress{"127.0.0.1", 41234}));
  EXPECT_EQ(head_->links_of(0, 5), (HostAddress{"127.0.0.2", 5}));

  agent_.reset();
  wait_for("lost 2");
  start_agent(2);
  wait_for("back 2");

  EXPECT_THAT(heard_, ElementsAre("joined 2", "lost 2", "back 2"));
}

class HeadOfHostsSoon : public HeadOfHosts {
 protected:
  HeadOfHostsSoon() : HeadOfHosts(kShortTimes) {}
};

TEST_F(HeadOfHostsSoon, HearsWhenTheFenceOfALostHostHasRunOut) {
  start_agent(1);
  wait_for("joined 1");

  agent_.reset();
  wait_for("fenced 1");

  EXPECT_THAT(heard_, ElementsAre("joined 1", "lost 1", "fenced 1"));
}

TEST_F(HeadOfHosts, HearsThatAHostIsAskedToLeave) {
  start_agent(1);
  wait_for("joined 1");

  agent_->ask_to_leave(SIGTERM);
  wait_for("lost 1");

  // It has no process, so nothing keeps it.
  EXPECT_THAT(heard_, ElementsAre("joined 1", "leaving 1 by 15", "lost 1"));
  loopback_.run_until([&] { return !ends_.empty(); }, "the end");
  EXPECT_EQ(ends_[0].exit_code, kExitStopped);
  EXPECT_FALSE(ends_[0].is_head_lost);
}

TEST_F(HeadOfHosts, TellsItsAgentsHowTheRunHasEnded) {
  start_agent(1);
  wait_for("joined 1");

  head_->end_run(kExitGaveUp, "gave up: no replica is left");
  loopback_.run_until([&] { return !ends_.empty(); }, "the end");

  EXPECT_EQ(ends_[0].exit_code, kExitGaveUp);
  EXPECT_EQ(ends_[0].sentence, "gave up: no replica is left");
}

TEST_F(HeadOfHosts, SendsAHostHomeThatStartsAnotherNumberOfReplicas) {
  Introduction other = introduction_of(1);
  other.replicas = 3;

  start_agent(other, {.path = folder_ / "run"});
  loopback_.run_until([&] { return !ends_.empty(); }, "the end");

  EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
  EXPECT_THAT(ends_[0].sentence, HasSubstr("it starts 3 replicas, and host 0 starts 2"));
  EXPECT_THAT(heard_, IsEmpty());
}

// Each would take the other's place, again and again.
TEST_F(HeadOfHosts, SendsASecondProcessHomeThatSaysItIsAHostWhichIsHeard) {
  Introduction first = introduction_of(1);
  first.agent = "first";
  start_agent(first, {.path = folder_ / "run"});
  wait_for("joined 1");
  const std::unique_ptr<Agent> stays = std::move(agent_);
  Introduction second = introduction_of(1);
  second.agent = "second";

  start_agent(second, {.path = folder_ / "run"});
  loopback_.run_until([&] { return !ends_.empty(); }, "the end");

  EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
  EXPECT_THAT(ends_[0].sentence, HasSubstr("another process is the agent of host 1"));
  EXPECT_THAT(heard_, ElementsAre("joined 1"));
}

// A run directory of the same name on another host may be another folder.
TEST_F(HeadOfHostsSoon, AreTakenOnlyWhereTheRunDirectoryIsTheSame) {
  start_agent(introduction_of(1), {.path = folder_ / "other"});

  loopback_.run_until([&] { return !ends_.empty(); }, "the end");

  EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
  EXPECT_THAT(ends_[0].sentence, HasSubstr("is not that of the head"));
  EXPECT_THAT(heard_, IsEmpty());
}

// Each host has a run directory of its own.
class HeadOfHostsWithFolders : public HeadOfHosts {
 protected:
  explicit HeadOfHostsWithFolders(bool has_savepoints = false)
      : HeadOfHosts(kPatientTimes, {.has_savepoints = has_savepoints}) {}
  void start_agent_in(const std::string& folder) {
    start_agent(introduction_of(1), {.path = folder, .is_shared = false});
  }
  void wait_for_end() {
    loopback_.run_until([&] { return !ends_.empty(); }, "the end");
  }
  // An agent that is started in `own` is refused, and keeps the run there.
  void expect_refusal_of(const std::string& own, const std::string& run, int host = 1) {
    start_agent(introduction_of(host), {.path = own, .is_shared = false});
    wait_for_end();
    EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
    EXPECT_THAT(ends_[0].sentence, HasSubstr("holds another run than that of the head"));
    EXPECT_EQ(run_in(own), run);
  }
};

// A folder of a host, with a savepoint of a run of this name.
void make_run(const std::string& folder, const std::string& run) {
  name_folder(folder, run, "");
  std::ofstream(folder + "/savepoint-0000000009.h5") << "whatever it holds";
}

TEST_F(HeadOfHostsWithFolders, NamesTheFolderOfAHostWithTheFirstGeneration) {
  start_agent_in(folder_ / "own");
  wait_for("joined 1");
  EXPECT_EQ(run_in(folder_ / "own"), "");

  head_->agent(1).open_generation({.number = 0});

  loopback_.run_until([&] { return !run_in(folder_ / "own").empty(); }, "the name");
  EXPECT_EQ(run_in(folder_ / "own"), run_in(folder_ / "run"));
  EXPECT_TRUE(agent_->may_save());
}

// It would end each generation otherwise.
TEST_F(HeadOfHostsWithFolders, LosesAHostForGoodWhoseFolderCannotBeWritten) {
  std::filesystem::create_directories(folder_ / "own/hosts/run/in_the_way");
  start_agent_in(folder_ / "own");
  wait_for("joined 1");

  head_->agent(1).open_generation({.number = 0});
  wait_for_end();

  EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
  EXPECT_THAT(ends_[0].sentence, HasSubstr("own/hosts/run"));
}

// The disk of host 0 was lost.
TEST_F(HeadOfHostsWithFolders, TakesOverTheRunOfAHostWhereItHasNone) {
  make_run(folder_ / "own", "another");
  std::ofstream(folder_ / "own/run.json") << R"({"shards": 2})";

  start_agent_in(folder_ / "own");
  wait_for("joined 1");

  EXPECT_EQ(run_in(folder_ / "own"), "another");
  EXPECT_EQ(run_in(folder_ / "run"), "another");
  EXPECT_EQ(text_in(folder_ / "run/run.json"), R"({"shards": 2})");
}

TEST_F(HeadOfHostsWithFolders, SendsAHostHomeWhoseRunIsNotTheOneThatItHasTakenOver) {
  make_run(folder_ / "own", "another");
  start_agent_in(folder_ / "own");
  wait_for("joined 1");
  agent_.reset();
  make_run(folder_ / "third", "a third one");

  expect_refusal_of(folder_ / "third", "a third one", 2);
}

TEST_F(HeadOfHostsWithFolders, SendsAHostHomeWithAnotherRunOnceTrainingHasBegun) {
  start_agent_in(folder_ / "own");
  wait_for("joined 1");
  head_->agent(1).open_generation({.number = 0});
  agent_.reset();
  wait_for("lost 1");
  make_run(folder_ / "third", "a third one");

  expect_refusal_of(folder_ / "third", "a third one");
}

class HeadOfHostsWithSavepoints : public HeadOfHostsWithFolders {
 protected:
  HeadOfHostsWithSavepoints() : HeadOfHostsWithFolders(true) {}
};

TEST_F(HeadOfHostsWithSavepoints, SendsAHostHomeWhoseFolderHasAnotherRun) {
  make_run(folder_ / "own", "another");

  expect_refusal_of(folder_ / "own", "another");
}

TEST_F(HeadOfHostsWithFolders, SendsAHostHomeWhoseFolderIsThatOfTheHead) {
  start_agent_in(folder_ / "run");
  wait_for_end();

  EXPECT_EQ(ends_[0].exit_code, kExitUnrecoverable);
  EXPECT_THAT(ends_[0].sentence, HasSubstr("leave that option out"));
}

// Its state is of the run that the head had begun with, which the folder does not hold any more.
TEST_F(HeadOfHostsWithFolders, DoesNotLetAHostSaveIntoAnotherRun) {
  start_agent_in(folder_ / "own");
  wait_for("joined 1");
  head_->agent(1).open_generation({.number = 0});
  loopback_.run_until([&] { return !run_in(folder_ / "own").empty(); }, "the name");

  std::filesystem::remove_all(folder_ / "own");
  make_run(folder_ / "own", "another");

  EXPECT_FALSE(agent_->may_save());
}

class HeadOfHostsThatBeganAnew : public HeadOfHosts {
 protected:
  HeadOfHostsThatBeganAnew() : HeadOfHosts(kPatientTimes, {.is_begun_anew = true}) {}
};

TEST_F(HeadOfHostsThatBeganAnew, HasAHostPutItsEarlierRunAside) {
  make_run(folder_ / "own", "another");

  start_agent(introduction_of(1), {.path = folder_ / "own", .is_shared = false});
  loopback_.run_until([&] { return !ends_.empty(); }, "the end");

  EXPECT_TRUE(ends_[0].begins_anew);
  EXPECT_EQ(run_in(folder_ / "own"), "another");
}

TEST(HeadOptions, AreRefusedWithTimesThatCannotBe) {
  EXPECT_THROW(RemoteHosts(HeadOptions{.limits = {.times = {.host = milliseconds(1)}}}, secret_of(1)), Error);
}

}  // namespace
}  // namespace holdfast::recovery
