// The text of `holdfast report`, for reports that the tests make up.

#include "report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

#include "support/command_test.h"
#include "support/folders.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast::cli {
namespace {

using recovery::RunReport;
using ::testing::HasSubstr;

// 2020-09-13 12:26:40 UTC.
constexpr double kStart = 1'600'000'000;

// While it lives, local time is that of a zone: "XYZ-2" is two hours ahead of UTC.
class TimeZone {
 public:
  explicit TimeZone(const char* name) {
    if (const char* zone = std::getenv("TZ")) before_ = zone;
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~TimeZone() {
    before_ ? ::setenv("TZ", before_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }

 private:
  std::optional<std::string> before_;
};

RunReport::Incident death() {
  RunReport::Incident incident{.cause = "killed by signal 9 (SIGKILL)",
                               .evidence = {"its mutex was let go"},
                               .member = 1,
                               .rank = 1,
                               .pid = 42,
                               .generation = 0,
                               .step = 50,
                               .replicas = 2};
  incident.noticed = kStart + 10;
  incident.cancelled = kStart + 10.0078125;
  incident.opened = kStart + 10.0625;
  incident.progressed = kStart + 10.5;
  incident.whole = kStart + 11;
  incident.next_generation = 1;
  incident.next_replicas = 1;
  incident.survivors = 1;
  incident.repeated = 0;
  return incident;
}

RunReport run_with(const RunReport::Incident& incident) {
  RunReport report;
  report.starts.push_back({.time = kStart, .pid = 99, .replicas = 2});
  report.incidents.push_back(incident);
  report.furthest_step = 120;
  report.generations = 3;
  return report;
}

TEST(DescribeReport, ShowsAnIncidentInTheOrderOfItsTimes) {
  const TimeZone zone("XYZ-2");
  EXPECT_THAT(describe_report(run_with(death()), true),
              HasSubstr("1. 2020-09-13 14:26:50.000 +02:00  replica 1 (process 1, pid 42) of generation 0 in step 50\n"
                        "    cause: killed by signal 9 (SIGKILL)\n"
                        "    seen: its mutex was let go\n"
                        "    the others stopped waiting 7.8 ms later\n"
                        "    generation 1 opened with 1 of 2 replicas 62.5 ms later\n"
                        "    the run passed its furthest step 500.0 ms later\n"
                        "    lost: no step: 1 survivor kept the state; a replica was missing for 1000.0 ms\n"));
}

TEST(DescribeReport, TellsWhenHostsWereLostAndCameBack) {
  const TimeZone zone("UTC0");
  RunReport::Incident lost = death();
  lost.host = 1;
  RunReport report = run_with(lost);
  report.starts[0].hosts = 3;
  report.absences.push_back({.host = 1, .began = lost.noticed, .why = "it did not answer", .returned = kStart + 40});
  report.absences.push_back({.host = 2, .began = kStart + 50, .was_asked = true});

  const std::string text = describe_report(report, false);

  EXPECT_THAT(text, HasSubstr("started with 2 replicas on 3 hosts, watchdog 99\n"));
  EXPECT_THAT(text, HasSubstr("wrote no end: it is live on the first host, or was killed, or that host stopped\n"));
  EXPECT_THAT(text, HasSubstr("\n2020-09-13 12:26:50.000 +00:00  host 1 was lost: it did not answer\n"
                              "    30.0 s later it was part of the run again\n"
                              "1. 2020-09-13 12:26:50.000 +00:00  replica 1 (process 1, pid 42 on host 1) of "
                              "generation 0 in step 50\n"));
  EXPECT_THAT(text, HasSubstr("\n2020-09-13 12:27:30.000 +00:00  host 2 was asked to leave the run\n"
                              "    it has not come back\n"));
}

TEST(DescribeReport, IsWhatTheGuideShows) {
  const TimeZone zone("UTC0");
  constexpr double kNoticed = 1'795'698'991.457;
  RunReport::Incident incident = death();
  incident.evidence = {"the kernel released the mutex that it holds while it lives",
                       "the kernel confirmed its end by signal 9"};
  incident.pid = 12889;
  incident.step = 120;
  incident.noticed = kNoticed;
  incident.cancelled = kNoticed + 0.0001;
  incident.opened = kNoticed + 0.0047;
  incident.progressed = kNoticed + 0.1261;
  incident.whole = kNoticed + 0.7202;
  const std::string report = describe_report(run_with(incident), true);
  const std::size_t begin = report.find("1. ");
  const std::string last = "was missing for 720.2 ms\n";
  const std::size_t end = report.find(last);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << report;

  const std::string shown = report.substr(begin, end + last.size() - begin);
  EXPECT_THAT(read_file(source_folder() + "/docs/guide/failures.md"), HasSubstr("```\n" + shown + "```\n"));
}

TEST(DescribeReport, ShowsWhatWasComputedAgain) {
  RunReport::Incident incident = death();
  incident.survivors = 0;
  incident.next_replicas = 2;
  incident.repeated = 17;
  incident.resumed = RunReport::Origin{"run/a.h5", 33};

  EXPECT_THAT(
      describe_report(run_with(incident), true),
      HasSubstr("lost: 17 steps, computed again, since no replica kept its state: it came from run/a.h5 of step "
                "33\n"));
}

TEST(DescribeReport, SaysWhatIsUnknown) {
  RunReport::Incident incident = death();
  incident.repeated.reset();

  EXPECT_THAT(describe_report(run_with(incident), true),
              HasSubstr("lost: unknown: the journal shows no progress after it"));
}

TEST(DescribeReport, ShowsTheCostOfAFailureOfAProcessThatWasNotTraining) {
  RunReport::Incident incident = death();
  incident.rank = -1;
  EXPECT_THAT(describe_report(run_with(incident), true), HasSubstr("lost: nothing: the others went on\n"));

  incident.replicas = 0;
  EXPECT_THAT(describe_report(run_with(incident), true), HasSubstr("lost: nothing: no replica was training\n"));

  incident.ended_run = true;
  EXPECT_THAT(describe_report(run_with(incident), true), HasSubstr("lost: this failure ended the run\n"));
}

TEST(DescribeReport, ShowsNoStepThatTheJournalDoesNotHave) {
  RunReport report = run_with(death());
  report.furthest_step = -1;
  report.generations = 1;

  EXPECT_THAT(describe_report(report, true), HasSubstr("furthest step unknown, 1 generation, 1 incident\n"));
}

TEST(DescribeReport, SeparatesProblemsWithSavepointsFromDurableOnes) {
  RunReport report = run_with(death());
  report.savepoints.durable = 24;
  report.savepoints.newest_path = "a.h5";
  report.savepoints.newest_step = 120;
  report.savepoints.problems = {"b.h5: the disk is full"};

  EXPECT_THAT(describe_report(report, true), HasSubstr("24 savepoints durable, the newest a.h5 of step 120\n"
                                                       "1 problem with savepoints:\n"
                                                       "    b.h5: the disk is full\n"));
}

TEST(DescribeReport, DistinguishesALiveRunFromAKilledOne) {
  const RunReport report = run_with(death());

  EXPECT_THAT(describe_report(report, true), HasSubstr("the run is live\n"));
  EXPECT_THAT(describe_report(report, false), HasSubstr("the watchdog wrote no end"));
}

TEST(DescribeReport, ShowsTheEndOfEachStart) {
  RunReport report = run_with(death());
  report.starts[0].ended = kStart + 60;
  report.starts[0].exit_code = 75;
  report.starts[0].sentence = "stopped as asked";
  report.starts.push_back({.time = kStart + 100, .pid = 100, .replicas = 4, .resumed = RunReport::Origin{"a.h5", 33}});

  const std::string text = describe_report(report, true);

  EXPECT_THAT(text, HasSubstr("ended after 60.0 s with exit code 75: stopped as asked\n"));
  EXPECT_THAT(text, HasSubstr("started with 4 replicas, watchdog 100, from step 33 (a.h5)\n"));
}

// It said "ended after -863989420.5 ms".
TEST(DescribeReport, ShowsNoNegativeTime) {
  RunReport report = run_with(death());
  report.starts[0].ended = kStart - 863989;
  report.starts[0].exit_code = 0;

  EXPECT_THAT(describe_report(report, false),
              HasSubstr("ended after an unknown time (the clock was set back) with exit code 0"));
}

RunReport::SlowReplica slow_replica() {
  RunReport::SlowReplica replica{.member = 3, .rank = 1, .device_slot = 1, .generation = 2};
  replica.noticed = kStart + 10;
  replica.since_step = 8;
  replica.score = 2.04;
  replica.milliseconds_per_round = 20.5;
  return replica;
}

TEST(DescribeReport, ShowsWhatWasDoneForASlowReplicaInTheOrderOfTheTimes) {
  const TimeZone zone("XYZ-2");
  RunReport report = run_with(death());
  RunReport::SlowReplica replica = slow_replica();
  replica.assignments = {
      {.time = kStart + 10.5, .generation = 3, .shards = {4, 2}, .why = "the slowest computes 16 ms"},
      {.time = kStart + 30, .generation = 4}};
  replica.ending = RunReport::SlowReplica::Ending::quick_again;
  replica.ended = kStart + 25;
  report.slow_replicas.push_back(replica);

  EXPECT_THAT(
      describe_report(report, true),
      HasSubstr("2020-09-13 14:26:50.000 +02:00  replica 1 (process 3, device slot 1) of generation 2 was slow, since "
                "step 8\n"
                "    it computed 2.04 times as long as the others, 20.5 ms for a round of shards\n"
                "    500.0 ms later shards were assigned 4, 2 with generation 3: the slowest computes 16 ms\n"
                "    15.0 s later it was no longer slow\n"
                "    20.0 s later shards were assigned evenly with generation 4\n"));
}

TEST(DescribeReport, NamesTheProcessThatReplacedASlowReplica) {
  RunReport report = run_with(death());
  RunReport::SlowReplica replica = slow_replica();
  replica.left_alone = {{kStart + 11, "replica 1 is slow; it stays until a spare is ready"}};
  replica.ending = RunReport::SlowReplica::Ending::replaced;
  replica.ended = kStart + 12;
  replica.replaced_by = 7;
  report.slow_replicas.push_back(replica);

  EXPECT_THAT(describe_report(report, true),
              HasSubstr("    1000.0 ms later it was not replaced: replica 1 is slow; it stays until a spare is ready\n"
                        "    2000.0 ms later it was ended, and process 7 replaced it\n"));
}

TEST(DescribeReport, SaysThatTheShardsOfASlowReplicaStayedTheSame) {
  RunReport report = run_with(death());
  report.slow_replicas.push_back(slow_replica());

  EXPECT_THAT(describe_report(report, true),
              HasSubstr("    its shards stayed the same\n    it stayed slow until the end\n"));
}

TEST(DescribeReport, ShowsWhyADeviceSlotWasLeftOutAndWhenItCameBack) {
  const TimeZone zone("XYZ-2");
  RunReport report = run_with(death());
  RunReport::Rest rest{.device_slot = 1, .began = kStart + 10, .seconds = 600, .failures = 3, .incident = 0};
  rest.tried = kStart + 610;
  rest.tried_by = 7;
  rest.used_again = kStart + 612;
  rest.shown_well_by = 7;
  report.rests.push_back(rest);
  report.rests.push_back(
      {.device_slot = 2, .began = kStart + 20, .seconds = 1200, .is_of_a_trial = true, .failures = 4});
  report.rests.push_back(
      {.device_slot = 3, .began = kStart + 30, .seconds = 600, .device = "cuda:3: the driver has lost it"});

  const std::string text = describe_report(report, true);

  EXPECT_THAT(
      text,
      HasSubstr("2020-09-13 14:26:50.000 +02:00  device slot 1 was left out for 600.0 s: 3 processes failed on it, "
                "one after the other; see incident 1\n"
                "    600.0 s later process 7 was started on it to try it\n"
                "    602.0 s later it was used again: process 7 had trained a step on it\n"));
  EXPECT_THAT(text, HasSubstr("device slot 2 was left out for 1200.0 s: the process that tried it failed\n"));
  EXPECT_THAT(text, HasSubstr("device slot 3 was left out for 600.0 s: cuda:3: the driver has lost it\n"));
}

// Slow replicas were printed before the first incident, although they came later.
TEST(DescribeReport, ShowsEventsInTheOrderOfTheirTimes) {
  RunReport report = run_with(death());
  RunReport::Incident later = death();
  later.noticed = kStart + 40;
  later.generation = 5;
  report.incidents.push_back(later);
  RunReport::SlowReplica slow = slow_replica();
  slow.noticed = kStart + 20;
  report.slow_replicas.push_back(slow);
  report.rests.push_back({.device_slot = 2, .began = kStart + 30, .seconds = 1200, .failures = 3});
  report.remarks.push_back({kStart + 35, "SIGTERM came"});
  report.remarks.push_back({kStart + 5, "3 replicas were asked for"});

  const std::string text = describe_report(report, true);

  std::size_t before = 0;
  for (const char* part : {"3 replicas were asked", "\n1. ", "was slow", "was left out", "SIGTERM came", "\n2. "}) {
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part << " in " << text;
    EXPECT_GE(at, before) << part << " in " << text;
    before = at;
  }
}

TEST(DescribeReport, ShowsWhereAReplicaCrashed) {
  RunReport::Incident incident = death();
  incident.frames = {"f() (/a+0x1)", "main (/a+0x2)"};

  EXPECT_THAT(describe_report(run_with(incident), true), HasSubstr("    seen: its mutex was let go\n"
                                                                   "    in: #0 f() (/a+0x1)\n"
                                                                   "        #1 main (/a+0x2)\n"));
}

// The report showed two incidents that had each cost the same steps.
TEST(DescribeReport, ShowsReplicasThatWereLostTogetherAsOneLoss) {
  RunReport report = run_with(death());
  RunReport::Incident other = death();
  other.member = other.rank = 0;
  other.pid = 41;
  other.noticed += 0.0009765625;
  report.incidents.push_back(other);

  const std::string text = describe_report(report, true);

  EXPECT_THAT(text, HasSubstr("2. 1.0 ms later  replica 0 (process 0, pid 41) of generation 0 in step 50\n"
                              "    cause: killed by signal 9 (SIGKILL)\n"
                              "    seen: its mutex was let go\n"
                              "    the others stopped waiting 7.8 ms later\n"));
  EXPECT_EQ(text.find("lost: "), text.rfind("lost: ")) << text;
}

class ReportTest : public testing::CommandTest {};

TEST_F(ReportTest, ReadsTheJournalOfARunThatIsNotLive) {
  const TemporaryFolder folder;
  std::ofstream(folder / "journal.jsonl") << R"({"event":"watchdog_started","pid":7,"replicas":2,"time":1})"
                                          << "\n";

  EXPECT_EQ(run({"report", folder.path()}), 0);
  EXPECT_THAT(out(), HasSubstr("watchdog 7"));
  EXPECT_EQ(run({"report", folder.path(), "--json"}), 0);
  EXPECT_THAT(out(), HasSubstr("\"pid\": 7"));
}

TEST_F(ReportTest, NamesAMissingJournal) {
  EXPECT_EQ(run({"report", "/nowhere"}), 2);
  EXPECT_THAT(problems(), HasSubstr("/nowhere/journal.jsonl"));
}

}  // namespace
}  // namespace holdfast::cli
