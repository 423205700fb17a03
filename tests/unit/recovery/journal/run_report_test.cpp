// The report of journals that the tests write line by line, as the watchdog does. Times are exact, so each duration of
// a recovery can be compared.

#include "holdfast/recovery/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "decide/device_slot_changes.h"
#include "decide/supervisor.h"
#include "holdfast/base/error.h"
#include "journal/recorded_actions.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Writes a journal like the watchdog, with a clock that the test moves.
class RunReportTest : public testing::Test {
 protected:
  void line(Json body) {
    body["time"] = now_;
    std::ofstream(path_, std::ios::app) << body.dump() << "\n";
  }

  void start() { line({{"event", "watchdog_started"}, {"pid", 99}, {"replicas", 2}, {"command", {"train"}}}); }

  void decide(const std::string& event, Json more, const std::vector<Action>& actions) {
    more["event"] = event;
    more["reason"] = more.value("reason", "because");
    for (const Action& action : actions) more["actions"].push_back(to_json(action, Moment{}));
    line(std::move(more));
  }

  void of(int member, const std::string& event, Json more, const std::vector<Action>& actions = {}) {
    more["member"] = member;
    more["pid"] = 100 + member;
    decide(event, std::move(more), actions);
  }

  static Action open(int generation, const std::vector<int>& members) {
    return {.kind = ActionKind::open_generation, .generation = generation, .members = members};
  }
  static Action kill(int member) { return {.kind = ActionKind::kill_process, .member = member}; }
  static Action cancel(int generation) { return {.kind = ActionKind::cancel_generation, .generation = generation}; }
  Action record(int member, const std::string& cause, double detected, int step) {
    line({{"event", "restart"},
          {"restart", {{"generation", 0}, {"rank", 1}, {"cause", cause}, {"detected", detected}, {"step", step}}}});
    return {.kind = ActionKind::record_failure, .member = member, .text = cause};
  }

  void note(const std::string& event, const Json& details) {
    line({{"event", event}, {"member", 0}, {"rank", 0}, {"pid", 100}, {"details", details}});
  }

  void progress(int step) { decide("progressed", {{"step", step}}, {}); }

  void begin_with_two() {
    start();
    of(1, "ready", {}, {open(0, {0, 1})});
    now_ = 10;
    progress(5);
  }

  RunReport report() const { return read_run_report(path_); }

  const TemporaryFolder directory_;
  const std::string path_ = directory_ / "journal.jsonl";
  double now_ = 1;
};

TEST_F(RunReportTest, TellsHowARunEnded) {
  start();
  now_ = 61;
  of(0, "exited", {{"exit_code", 0}}, {{.kind = ActionKind::finish, .exit_code = 0, .text = "finished"}});

  const RunReport told = report();

  ASSERT_EQ(told.starts.size(), 1U);
  EXPECT_EQ(told.starts[0].time, 1);
  EXPECT_EQ(told.starts[0].pid, 99);
  EXPECT_EQ(told.starts[0].replicas, 2);
  EXPECT_EQ(told.starts[0].ended, 61);
  EXPECT_EQ(told.starts[0].exit_code, 0);
  EXPECT_EQ(told.starts[0].sentence, "finished");
  EXPECT_TRUE(told.incidents.empty());
}

TEST_F(RunReportTest, LeavesTheEndOpenWhenARunIsLiveOrWasKilled) {
  start();

  EXPECT_FALSE(report().starts.at(0).ended.has_value());
}

TEST_F(RunReportTest, HasTheFramesOfACrashWithItsIncident) {
  begin_with_two();
  of(1, "exited", {{"signal", 11}}, {record(1, "killed by signal 11 (SIGSEGV)", 20, 50), cancel(0)});
  const auto crashed = [this](int pid, const Json& frames) {
    line({{"event", "crashed"}, {"member", 1}, {"pid", pid}, {"signal", 11}, {"frames", frames}});
  };
  crashed(101, {"f() (/a+0x1)", "main (/a+0x2)"});
  crashed(999, {"of another run"});
  crashed(101, "no list");

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 1U);
  EXPECT_EQ(told.incidents[0].frames, (std::vector<std::string>{"f() (/a+0x1)", "main (/a+0x2)"}));
  EXPECT_EQ(told.skipped_lines, 1);
}

TEST_F(RunReportTest, FollowsADeathUntilAllReplicasAreBack) {
  begin_with_two();
  now_ = 20.002;
  of(1, "died", {{"step", 50}}, {kill(1), cancel(0)});
  now_ = 20.01;
  of(1, "exited", {{"signal", 9}}, {record(1, "killed by signal 9 (SIGKILL)", 20.001, 50)});
  now_ = 20.02;
  of(0, "checked_in", {{"step", 50}}, {open(1, {0})});
  now_ = 20.1;
  progress(51);
  now_ = 21;
  of(0, "checked_in", {{"step", 60}}, {open(2, {0, 2})});

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 1U);
  const RunReport::Incident& incident = told.incidents[0];
  EXPECT_EQ(incident.cause, "killed by signal 9 (SIGKILL)");
  EXPECT_THAT(incident.evidence, ElementsAre("the kernel released the mutex that it holds while it lives",
                                             "the kernel confirmed its end by signal 9"));
  EXPECT_EQ(incident.member, 1);
  EXPECT_EQ(incident.rank, 1);
  EXPECT_EQ(incident.pid, 101);
  EXPECT_EQ(incident.generation, 0);
  EXPECT_EQ(incident.replicas, 2);
  EXPECT_EQ(incident.step, 50);
  EXPECT_EQ(incident.noticed, 20.001);
  EXPECT_EQ(incident.cancelled, 20.002);
  EXPECT_EQ(incident.opened, 20.02);
  EXPECT_EQ(incident.next_generation, 1);
  EXPECT_EQ(incident.next_replicas, 1);
  EXPECT_EQ(incident.survivors, 1);
  EXPECT_EQ(incident.progressed, 20.1);
  EXPECT_EQ(incident.whole, 21);
  EXPECT_EQ(incident.repeated, 0);
  EXPECT_FALSE(incident.resumed.has_value());
  EXPECT_EQ(told.generations, 3);
}

// Members 0 and 1 are on host 0, and 2 and 3 on host 1.
TEST_F(RunReportTest, TellsOfEachReplicaThatWasLostWithItsHost) {
  line({{"event", "watchdog_started"}, {"pid", 99}, {"replicas", 4}, {"hosts", 2}, {"command", {"train"}}});
  decide("host_joined", {{"host", 1}}, {});
  for (const int member : {1, 2}) of(member, "ready", {{"host", member / 2}});
  of(3, "ready", {{"host", 1}}, {open(0, {0, 1, 2, 3})});
  progress(5);
  now_ = 20.002;
  const std::string cause = "host 1 is lost: it did not answer";
  const std::vector<Action> lost = {record(2, cause, 20, 50), record(3, cause, 20, 50), cancel(0)};
  decide("host_lost", {{"host", 1}, {"what", "it did not answer"}}, lost);
  now_ = 20.02;
  of(0, "checked_in", {{"step", 50}}, {open(1, {0, 1})});
  now_ = 20.1;
  progress(51);
  now_ = 30;
  decide("host_returned", {{"host", 1}}, {});
  of(5, "died", {{"host", 1}, {"step", -1}}, {kill(5)});

  const RunReport told = report();

  EXPECT_EQ(told.starts.at(0).hosts, 2);
  ASSERT_EQ(told.incidents.size(), 3U);
  const RunReport::Incident& second = told.incidents[1];
  EXPECT_EQ(second.member, 3);
  EXPECT_EQ(second.rank, 3);
  EXPECT_EQ(second.pid, 103);
  EXPECT_EQ(second.host, 1);
  EXPECT_EQ(second.step, 50);
  EXPECT_EQ(second.cause, cause);
  EXPECT_THAT(second.evidence, ElementsAre("its host was lost: it did not answer"));
  EXPECT_EQ(second.noticed, 20);
  EXPECT_EQ(second.cancelled, 20.002);
  EXPECT_EQ(second.next_replicas, 2);
  EXPECT_EQ(second.survivors, 2);
  EXPECT_EQ(second.progressed, 20.1);
  EXPECT_EQ(told.incidents[2].host, 1);
  ASSERT_EQ(told.absences.size(), 1U);
  EXPECT_EQ(told.absences[0].began, 20);
  EXPECT_EQ(told.absences[0].returned, 30);
  const Json json = Json::parse(to_json(told));
  EXPECT_EQ(json.at("starts").at(0).at("hosts"), 2);
  EXPECT_EQ(json.at("incidents").at(0).at("host"), 1);
  EXPECT_EQ(json.at("absences").size(), 1U);
}

TEST_F(RunReportTest, NamesNoHostsOfARunOnASingleOne) {
  begin_with_two();
  of(1, "died", {{"step", 50}}, {kill(1), cancel(0)});

  const Json json = Json::parse(to_json(report()));

  EXPECT_FALSE(json.contains("absences"));
  EXPECT_FALSE(json.at("starts").at(0).contains("hosts"));
  EXPECT_FALSE(json.at("incidents").at(0).contains("host"));
}

TEST_F(RunReportTest, CountsTheStepsThatAreComputedAgainWhenAllDie) {
  begin_with_two();
  for (const int member : {0, 1}) {
    of(member, "died", {{"step", 57}}, {kill(member), cancel(0)});
    of(member, "exited", {{"signal", 9}}, {record(member, "killed by signal 9 (SIGKILL)", now_, 57)});
  }
  of(2, "ready", {}, {open(1, {2, 3})});
  note("resumed", {{"path", "run/savepoint-0000000040.h5"}, {"step", 40}});
  progress(58);

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 2U);
  for (const RunReport::Incident& incident : told.incidents) {
    EXPECT_EQ(incident.survivors, 0);
    ASSERT_TRUE(incident.resumed.has_value());
    EXPECT_EQ(incident.resumed->path, "run/savepoint-0000000040.h5");
    EXPECT_EQ(incident.repeated, 17);
  }
}

TEST_F(RunReportTest, CountsAllStepsWhenNothingWasSaved) {
  begin_with_two();
  for (const int member : {0, 1}) of(member, "died", {{"step", 57}}, {kill(member), cancel(0)});
  of(2, "ready", {}, {open(1, {2, 3})});
  progress(58);

  EXPECT_EQ(report().incidents.at(0).repeated, 57);
}

TEST_F(RunReportTest, LeavesTheLossOpenUntilTheRunGoesOn) {
  begin_with_two();
  of(1, "died", {{"step", 57}}, {kill(1), cancel(0)});

  const RunReport::Incident incident = report().incidents.at(0);

  EXPECT_FALSE(incident.repeated.has_value());
  EXPECT_FALSE(incident.opened.has_value());
}

TEST_F(RunReportTest, KeepsTheSentenceOfAHang) {
  begin_with_two();
  of(0, "hang_detected", {{"what", "made no progress for 30.0 s"}, {"step", 7}}, {kill(0), cancel(0)});

  const RunReport::Incident incident = report().incidents.at(0);

  EXPECT_EQ(incident.cause, "made no progress for 30.0 s");
  EXPECT_THAT(incident.evidence, ElementsAre("hung: made no progress for 30.0 s"));
  EXPECT_EQ(incident.rank, 0);
}

TEST_F(RunReportTest, NamesTheFailureThatEndsTheRun) {
  begin_with_two();
  of(1, "failure_reported", {{"what", "the option x differs"}, {"is_unrecoverable", true}}, {kill(1), kill(0)});
  of(1, "exited", {{"exit_code", 1}}, {{.kind = ActionKind::finish, .exit_code = 1, .text = "the option x differs"}});

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 1U);
  EXPECT_EQ(told.incidents[0].cause, "the option x differs");
  EXPECT_TRUE(told.incidents[0].ended_run);
  EXPECT_EQ(told.starts.at(0).exit_code, 1);
}

TEST_F(RunReportTest, NamesTheFailureThatEndedARunBeforeItTrained) {
  start();
  const Action finish{.kind = ActionKind::finish, .exit_code = 70, .text = "gave up"};
  of(0, "failure_reported", {{"what", "no data"}}, {kill(0)});
  of(1, "failure_reported", {{"what", "no data"}}, {kill(1)});
  of(1, "exited", {{"exit_code", 1}}, {finish});

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 2U);
  EXPECT_EQ(told.incidents[0].replicas, 0) << "no replica was training";
  EXPECT_FALSE(told.incidents[0].ended_run);
  EXPECT_TRUE(told.incidents[1].ended_run);
}

TEST_F(RunReportTest, DoesNotTakeASurvivedFailureForTheEnd) {
  begin_with_two();
  of(2, "failure_reported", {{"what", "no room"}}, {kill(2)});
  progress(90);
  of(0, "exited", {{"exit_code", 1}}, {{.kind = ActionKind::finish, .exit_code = 1, .text = "too many replicas"}});

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 1U);
  EXPECT_EQ(told.incidents[0].replicas, 2) << "they went on";
  EXPECT_FALSE(told.incidents[0].ended_run);
}

TEST_F(RunReportTest, DoesNotTakeAnOrderlyExitForAnIncident) {
  begin_with_two();
  of(1, "exited", {{"exit_code", 0}});
  decide("stop_requested", {{"signal", 15}, {"reason", "SIGTERM came"}}, {kill(0)});
  of(0, "exited", {{"signal", 9}}, {{.kind = ActionKind::finish, .exit_code = 75, .text = "stopped"}});

  const RunReport told = report();

  EXPECT_TRUE(told.incidents.empty());
  ASSERT_EQ(told.remarks.size(), 1U);
  EXPECT_EQ(told.remarks[0].sentence, "SIGTERM came");
}

TEST_F(RunReportTest, GivesNoRankToASpareThatFails) {
  begin_with_two();
  of(2, "exited", {{"signal", 11}}, {record(2, "killed by signal 11 (SIGSEGV)", now_, -1)});
  of(0, "checked_in", {}, {open(1, {0, 1})});

  const RunReport::Incident incident = report().incidents.at(0);

  EXPECT_EQ(incident.rank, -1);
  EXPECT_EQ(incident.cause, "killed by signal 11 (SIGSEGV)");
  EXPECT_FALSE(incident.opened.has_value());
}

TEST_F(RunReportTest, DistinguishesASecondFailureFromTheFirst) {
  begin_with_two();
  of(1, "died", {}, {kill(1), cancel(0)});
  of(1, "exited", {{"signal", 9}}, {record(1, "killed by signal 9 (SIGKILL)", now_, 50)});
  of(0, "checked_in", {}, {open(1, {0, 2})});
  progress(60);
  of(2, "failure_reported", {{"what", "no memory"}}, {kill(2), cancel(1), record(2, "no memory", now_, 70)});
  of(0, "checked_in", {}, {open(2, {0, 3})});
  progress(71);

  const RunReport told = report();

  ASSERT_EQ(told.incidents.size(), 2U);
  EXPECT_EQ(told.incidents[0].next_generation, 1);
  EXPECT_EQ(told.incidents[1].generation, 1);
  EXPECT_EQ(told.incidents[1].rank, 1);
  EXPECT_EQ(told.incidents[1].cause, "no memory");
  EXPECT_EQ(told.incidents[1].next_generation, 2);
}

TEST_F(RunReportTest, CountsSavepointsAndTheirProblems) {
  begin_with_two();
  note("savepoint", {{"path", "run/a.h5"}, {"step", 3}});
  note("savepoint", {{"path", "run/b.h5"}, {"step", 6}});
  note("savepoint_skipped", {{"path", "run/c.h5"}, {"step", 9}});
  note("savepoint_failed", {{"path", "run/d.h5"}, {"step", 12}, {"why", "disk full"}});

  const RunReport::Savepoints savepoints = report().savepoints;

  EXPECT_EQ(savepoints.durable, 2);
  EXPECT_EQ(savepoints.newest_path, "run/b.h5");
  EXPECT_EQ(savepoints.newest_step, 6);
  EXPECT_EQ(savepoints.skipped, 1);
  EXPECT_THAT(savepoints.problems, ElementsAre("run/d.h5: disk full"));
}

TEST_F(RunReportTest, SaysWhereALaterStartWentOn) {
  begin_with_two();
  start();
  of(0, "ready", {}, {open(5, {0, 1})});
  note("resumed", {{"path", "run/a.h5"}, {"step", 3}});

  const RunReport told = report();

  ASSERT_EQ(told.starts.size(), 2U);
  EXPECT_FALSE(told.starts[0].resumed.has_value());
  ASSERT_TRUE(told.starts[1].resumed.has_value());
  EXPECT_EQ(told.starts[1].resumed->step, 3);
}

// After a NaN all replicas go back to a state of their own run, in another generation.
TEST_F(RunReportTest, DoesNotTakeARollBackForTheBeginningOfItsStart) {
  begin_with_two();
  of(0, "regrouped", {}, {cancel(0), open(1, {0, 1})});
  note("resumed", {{"path", "the snapshot in the watchdog's memory"}, {"step", 3}});

  EXPECT_FALSE(report().starts.at(0).resumed.has_value());
}

TEST_F(RunReportTest, HasASlowReplicaThatWasReplaced) {
  begin_with_two();
  line({{"event", "straggler"},
        {"generation", 0},
        {"member", 1},
        {"rank", 1},
        {"is_straggler", true},
        {"score", 2.0},
        {"since_step", 8}});
  line({{"event", "dealt"}, {"generation", 1}, {"is_even", false}, {"shards", {4, 2}}});
  of(1, "slow", {{"what", "it computes 2.0 times as long as the others"}},
     {kill(1), record(1, "was slow", now_, 50), cancel(0)});
  of(0, "checked_in", {{"step", 50}}, {open(1, {0, 2})});

  const RunReport told = report();

  ASSERT_EQ(told.slow_replicas.size(), 1U);
  EXPECT_EQ(told.slow_replicas[0].replaced_by, 2);
  EXPECT_EQ(told.slow_replicas[0].assignments.size(), 1U);
  ASSERT_EQ(told.incidents.size(), 1U);
  EXPECT_THAT(told.incidents[0].evidence, ElementsAre("slow: it computes 2.0 times as long as the others"));
  EXPECT_EQ(Json::parse(to_json(told)).at("slow_replicas").at(0).at("ending"), "replaced");
}

TEST_F(RunReportTest, NamesTheIncidentAfterWhichASlotWasLeftOut) {
  begin_with_two();
  const DeviceSlotChange left_out{
      .device_slot = 1, .member = 1, .failures = 3, .times_left_out = 1, .rest = std::chrono::minutes(10)};
  of(0, "failure_reported", {{"what", "no memory"}}, {kill(0), cancel(0), record(0, "no memory", now_, 50)});
  of(1, "died", {{"step", 50}, {"places", Json::array({to_json(left_out)})}}, {kill(1), cancel(0)});

  const RunReport told = report();

  ASSERT_EQ(told.rests.size(), 1U);
  EXPECT_EQ(told.rests[0].device_slot, 1);
  EXPECT_EQ(told.rests[0].incident, 1);
  EXPECT_EQ(Json::parse(to_json(told)).at("rests").at(0).at("seconds"), 600);
}

TEST_F(RunReportTest, TellsOnceWhichSamplesWereLeftOut) {
  start();
  note("samples_skipped", {{"count", 2}, {"first", {"sample 3: cut off", "sample 9: ragged"}}});
  start();
  note("samples_skipped", {{"count", 2}, {"first", {"sample 3: cut off", "sample 9: ragged"}}});
  note("samples_skipped", {{"count", "two"}});

  const RunReport told = report();

  ASSERT_EQ(told.remarks.size(), 1U);
  EXPECT_EQ(told.remarks[0].sentence,
            "2 bad samples were left out of the data, as the program asked. The first: sample 3: cut off; sample 9: "
            "ragged");
  EXPECT_EQ(told.skipped_lines, 1);
}

TEST_F(RunReportTest, TellsOfOneSampleThatWasLeftOut) {
  start();
  note("samples_skipped", {{"count", 1}, {"first", {"sample 3: cut off"}}});

  const RunReport told = report();

  ASSERT_EQ(told.remarks.size(), 1U);
  EXPECT_EQ(told.remarks[0].sentence,
            "1 bad sample was left out of the data, as the program asked. The first: sample 3: cut off");
}

TEST_F(RunReportTest, CountsLinesThatItCannotRead) {
  begin_with_two();
  std::ofstream(path_, std::ios::app) << "{\"event\": \"died\", \"tim\n"
                                      << "[1]\n{}\n\xff\n"
                                      << R"({"event": "died", "time": 3, "reason": "x", "actions": [1]})"
                                      << "\n"
                                      << R"({"event": "resumed", "time": "late", "details": {}})"
                                      << "\n";
  progress(6);

  const RunReport told = report();

  EXPECT_EQ(told.skipped_lines, 6);
  EXPECT_EQ(told.furthest_step, 6);
}

TEST_F(RunReportTest, DoesNotTakeAReportOfAWorkerForADecision) {
  begin_with_two();
  note("died", {{"member", 1}});
  note("watchdog_started", "text");

  const RunReport told = report();

  EXPECT_TRUE(told.incidents.empty());
  EXPECT_EQ(told.starts.size(), 1U);
  EXPECT_EQ(told.skipped_lines, 0);
}

TEST_F(RunReportTest, IsWrittenAsJsonWithNullsForWhatIsNotKnown) {
  begin_with_two();
  of(1, "died", {{"step", 57}}, {kill(1), cancel(0)});

  const Json body = Json::parse(to_json(report()));

  EXPECT_EQ(body.at("incidents").at(0).at("rank"), 1);
  EXPECT_EQ(body.at("incidents").at(0).at("cancelled"), 10);
  EXPECT_TRUE(body.at("incidents").at(0).at("opened").is_null());
  EXPECT_TRUE(body.at("starts").at(0).at("ended").is_null());
}

TEST_F(RunReportTest, NamesAMissingJournal) {
  try {
    report();
    FAIL() << "there was a report";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr(path_));
  }
}

TEST_F(RunReportTest, HasTheReportsOfTheDriver) {
  start();
  decide("ready", {}, {open(0, {0, 1})});
  line({{"event", "device_event"}, {"device", "cuda:1"}, {"what", "cuda:1: Xid 48"}, {"action", "replace"}});
  of(1, "device_failed", {{"what", "cuda:1: Xid 48"}, {"step", 7}},
     {kill(1), record(1, "cuda:1: Xid 48", now_, 7), cancel(0)});
  line({{"event", "devices_unwatched"}, {"what", "nothing is noticed"}});

  const RunReport report = read_run_report(path_);

  ASSERT_EQ(report.remarks.size(), 2U);
  EXPECT_EQ(report.remarks[0].sentence, "cuda:1: Xid 48");
  EXPECT_EQ(report.remarks[1].sentence, "nothing is noticed");
  ASSERT_EQ(report.incidents.size(), 1U);
  EXPECT_EQ(report.incidents[0].cause, "cuda:1: Xid 48");
  EXPECT_THAT(report.incidents[0].evidence, ElementsAre("its device failed: cuda:1: Xid 48"));
  EXPECT_EQ(report.skipped_lines, 0);
}

TEST(RunReportOf, ReadsOnlyRegularFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "journal.jsonl").c_str(), 0600), 0);

  EXPECT_THROW(read_run_report(folder / "journal.jsonl"), Error);
}

}  // namespace
}  // namespace holdfast::recovery
