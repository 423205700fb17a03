#include "report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/command_test.h"
#include "support/temporary_folder.h"

namespace holdfast::cli {
namespace {

using recovery::RunReport;
using ::testing::HasSubstr;

// Of 2020-09-13 12:26:40 UTC.
constexpr double kStart = 1'600'000'000;

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

TEST(DescribeReport, TellsAnIncidentInTheOrderOfItsTimes) {
  EXPECT_THAT(describe_report(run_with(death()), true),
              HasSubstr("1. 2020-09-13 12:26:50.000 UTC  replica 1 (process 1, pid 42) of generation 0 in step 50\n"
                        "    cause: killed by signal 9 (SIGKILL)\n"
                        "    seen: its mutex was let go\n"
                        "    the others' waits were ended 7.8 ms later\n"
                        "    generation 1 opened with 1 of 2 replicas 62.5 ms later\n"
                        "    the run was seen further than ever before 500.0 ms later\n"
                        "    lost: no step: 1 survivor kept the state; a replica was missing for 1000.0 ms\n"));
}

TEST(DescribeReport, TellsWhatWasComputedAgain) {
  RunReport::Incident incident = death();
  incident.survivors = 0;
  incident.next_replicas = 2;
  incident.repeated = 17;
  incident.resumed = RunReport::Origin{"run/a.h5", 33};

  EXPECT_THAT(describe_report(run_with(incident), true),
              HasSubstr("lost: 17 steps, computed again, since nobody's state survived: it came from run/a.h5 of step "
                        "33\n"));
}

TEST(DescribeReport, TellsWhatIsNotKnown) {
  RunReport::Incident incident = death();
  incident.repeated.reset();

  EXPECT_THAT(describe_report(run_with(incident), true),
              HasSubstr("lost: not known: no progress was written down after it"));
}

TEST(DescribeReport, TellsALiveRunFromOneThatWasKilled) {
  const RunReport report = run_with(death());

  EXPECT_THAT(describe_report(report, true), HasSubstr("it is running\n"));
  EXPECT_THAT(describe_report(report, false), HasSubstr("its watchdog left no word"));
}

TEST(DescribeReport, TellsTheEndOfEachStart) {
  RunReport report = run_with(death());
  report.starts[0].ended = kStart + 60;
  report.starts[0].exit_code = 75;
  report.starts[0].sentence = "stopped as asked";
  report.starts.push_back({.time = kStart + 100, .pid = 100, .replicas = 4, .resumed = RunReport::Origin{"a.h5", 33}});

  const std::string text = describe_report(report, true);

  EXPECT_THAT(text, HasSubstr("ended after 60.0 s with exit code 75: stopped as asked\n"));
  EXPECT_THAT(text, HasSubstr("started with 4 replicas, watchdog 100, from step 33 (a.h5)\n"));
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

TEST_F(ReportTest, NamesTheJournalThatIsNotThere) {
  EXPECT_EQ(run({"report", "/nowhere"}), 2);
  EXPECT_THAT(problems(), HasSubstr("/nowhere/journal.jsonl"));
}

}  // namespace
}  // namespace holdfast::cli
