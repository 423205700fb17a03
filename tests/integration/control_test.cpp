// Requests to live runs, through the socket in the run directory. recovery_worker is the run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/run_control.h"
#include "holdfast/recovery/run_report.h"
#include "holdfast/recovery/watchdog.h"
#include "support/comes_true.h"
#include "support/program.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::HasSubstr;

class LiveRun : public testing::Test {
 protected:
  void start(int replicas, const std::vector<std::string>& script) { start(replicas, script, replicas); }
  void start(int replicas, const std::vector<std::string>& script, int that_get_to_train) {
    std::vector<std::string> arguments{folder_.path(), std::to_string(replicas)};
    arguments.insert(arguments.end(), script.begin(), script.end());
    program_.emplace(built_program("recovery_worker"), arguments);
    ASSERT_TRUE(comes_true([&] { return members_in("training") == that_get_to_train; }));
  }

  Json ask(const Json& request) const {
    return Json::parse(ask_run(folder_.path(), request.dump(), Deadline::after(kPatience)));
  }

  Json status() const {
    try {
      return ask({{"command", "status"}});
    } catch (const Error&) {
      return {{"members", Json::array()}};  // not yet
    }
  }

  int members_in(const std::string& stage) const {
    const Json now = status();
    int count = 0;
    for (const Json& member : now.at("members")) count += member.at("stage") == stage ? 1 : 0;
    return count;
  }

  int stop() {
    program_->signal(SIGTERM);
    return program_->wait().exit_code;
  }

  const TemporaryFolder folder_;
  std::optional<RunningProgram> program_;
};

TEST_F(LiveRun, ShowsEveryProcess) {
  start(2, {"until_stop"});
  Json told;
  const auto has_rate = [](const Json& member) { return member.at("samples_per_second").get<double>() > 0; };
  ASSERT_TRUE(comes_true([&] {
    told = status();
    const Json& members = told.at("members");
    return members.size() == 2 && std::all_of(members.begin(), members.end(), has_rate);
  }));

  EXPECT_EQ(told.at("ok"), true);
  EXPECT_EQ(told.at("phase"), "running");
  EXPECT_EQ(told.at("generation"), 0);
  EXPECT_EQ(told.at("target"), 2);
  EXPECT_EQ(told.at("watchdog_pid"), program_->pid());
  ASSERT_EQ(told.at("members").size(), 2U);
  for (int rank = 0; rank < 2; ++rank) {
    const Json& member = told.at("members").at(rank);
    EXPECT_EQ(member.at("rank"), rank);
    EXPECT_EQ(member.at("phase"), "computing");
    EXPECT_GT(member.at("pid"), 0);
    EXPECT_GT(member.at("resident_bytes"), 100'000);
    EXPECT_GE(member.at("step"), 0);
  }
  EXPECT_EQ(stop(), kExitStopped);
}

// As systemd and Slurm do. The processes died of it before they could save.
TEST_F(LiveRun, StopsWhereAllProcessesGetTheSignal) {
  start(2, {"until_stop"});
  for (const Json& member : status().at("members")) ASSERT_EQ(::kill(member.at("pid").get<pid_t>(), SIGTERM), 0);

  EXPECT_EQ(stop(), kExitStopped);

  EXPECT_TRUE(read_run_report(folder_ / "journal.jsonl").incidents.empty());
}

TEST_F(LiveRun, SaysWhyADeviceSlotIsLeftOutAndForHowLong) {
  start(2, {"fails=3", "place_rest=600000", "until_stop"}, 1);
  Json rests;
  ASSERT_TRUE(comes_true([&] {
    rests = status().value("rests", Json::array());
    return !rests.empty();
  }));

  ASSERT_EQ(rests.size(), 1U);
  EXPECT_EQ(rests[0].at("place"), 1);
  EXPECT_THAT(rests[0].at("why").get<std::string>(), HasSubstr("3 failures in a row"));
  EXPECT_GT(rests[0].at("seconds_left"), 0);
  EXPECT_LE(rests[0].at("seconds_left"), 600);
  EXPECT_TRUE(rests[0].at("tried_by").is_null());
  EXPECT_EQ(stop(), kExitStopped);
}

TEST_F(LiveRun, GrowsAndShrinksWhenItIsScaled) {
  start(2, {"until_stop"});

  const Json answer = ask({{"command", "scale"}, {"replicas", 3}});

  EXPECT_EQ(answer.at("target"), 3);
  EXPECT_TRUE(comes_true([&] { return members_in("training") == 3; }));
  ask({{"command", "scale"}, {"replicas", 1}});
  EXPECT_TRUE(comes_true([&] {
    const Json now = status();
    return now.at("members").size() == 1 && now.at("phase") == "running";
  }));
  EXPECT_EQ(stop(), kExitStopped);
  EXPECT_TRUE(read_run_report(folder_ / "journal.jsonl").incidents.empty());
}

TEST_F(LiveRun, AnswersARequestForASavepointWhenItIsDurable) {
  start(2, {"until_stop"});

  const Json first = ask({{"command", "snapshot"}});
  const Json second = ask({{"command", "snapshot"}});

  EXPECT_EQ(first.at("ok"), true);
  EXPECT_EQ(first.at("path"), folder_ / "a.h5");
  EXPECT_GT(second.at("step"), first.at("step"));
}

TEST_F(LiveRun, PassesOnTheErrorOfAFailedSavepoint) {
  start(1, {"refuse_savepoint", "until_stop"});

  const Json answer = ask({{"command", "snapshot"}});

  EXPECT_EQ(answer.at("ok"), false);
  EXPECT_EQ(answer.at("error"), "the disk is full");
}

TEST_F(LiveRun, AsksTheNextGenerationWhenTheFirstRankDiesWithTheRequest) {
  start(1, {"die_when_asked@0:0", "until_stop"});

  const Json answer = ask({{"command", "snapshot"}});

  EXPECT_EQ(answer.at("ok"), true) << answer;
  EXPECT_EQ(read_run_report(folder_ / "journal.jsonl").incidents.size(), 1U);
}

TEST_F(LiveRun, GivesUpOnASavepointThatNoReplicaWrites) {
  start(1, {"ignore_stop"});

  const Json answer = ask({{"command", "snapshot"}, {"seconds", 1}});

  EXPECT_EQ(answer.at("ok"), false);
  EXPECT_THAT(answer.at("error").get<std::string>(), HasSubstr("in time"));
}

TEST_F(LiveRun, AnswersARequestForASavepointWhenItEnds) {
  start(1, {"ignore_stop"});
  Json answer;
  {
    std::jthread asks([&] { answer = ask({{"command", "snapshot"}}); });
    ASSERT_TRUE(comes_true([&] { return status().value("open_savepoint_requests", 0) == 1; }));
    program_->signal(SIGTERM);
    ASSERT_TRUE(comes_true([&] { return status().value("is_stop_requested", false); }));
    program_->signal(SIGTERM);
  }

  EXPECT_EQ(answer.at("ok"), false);
  EXPECT_THAT(answer.at("error").get<std::string>(), HasSubstr("the run ended before the savepoint was durable"));
}

TEST_F(LiveRun, RefusesToHaveItsSavepointsPruned) {
  start(1, {"until_stop"});

  const ProgramResult result = run_program(built_program("holdfast"), {"prune", folder_.path(), "--keep-last", "1"});

  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("a run is live in " + folder_.path()));
  EXPECT_EQ(stop(), kExitStopped);
}

TEST_F(LiveRun, SurvivesGarbageOnItsSocket) {
  start(2, {"until_stop"});
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder_ / "control").copy(address.sun_path, sizeof address.sun_path - 1);
  std::vector<FileDescriptor> crowd;
  for (int i = 0; i < 100; ++i) {
    crowd.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(crowd.back().value(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string garbage(static_cast<std::size_t>(i) * 1000, static_cast<char>(i));
    ::send(crowd.back().value(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  const Json told = status();

  EXPECT_EQ(told.at("generation"), 0);
  EXPECT_EQ(told.at("restarts"), 0);
  EXPECT_EQ(stop(), kExitStopped);
}

TEST_F(LiveRun, ShowsADeathInItsReport) {
  start(2, {"until_stop"});
  const int pid = status().at("members").at(1).at("pid");

  ::kill(pid, SIGKILL);
  // A survivor checks in when its peer's death cancels its wait; here it does not wait.
  ASSERT_TRUE(comes_true([&] { return read_run_report(folder_ / "journal.jsonl").incidents.size() == 1; }));
  stop();

  const RunReport::Incident incident = read_run_report(folder_ / "journal.jsonl").incidents.at(0);
  EXPECT_EQ(incident.pid, pid);
  EXPECT_EQ(incident.rank, 1);
  EXPECT_THAT(incident.cause, HasSubstr("SIGKILL"));
  EXPECT_TRUE(incident.cancelled.has_value());
}

}  // namespace
}  // namespace holdfast::recovery
