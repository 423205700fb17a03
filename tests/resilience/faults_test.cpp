// Every kind of fault and every phase, in a real run: the fault strikes, and the weights at the end are those of an
// undisturbed run.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

struct FaultCase {
  std::string name;
  std::vector<std::string> faults;
  int replicas = 2;
  std::map<std::string, std::string> options{};
};

void PrintTo(const FaultCase& value, std::ostream* stream) {
  *stream << value.name;
}

std::string name_of(const testing::TestParamInfo<FaultCase>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::size_t marks(const TemporaryFolder& folder) {
  const std::filesystem::directory_iterator entries(folder / "run/faults");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::string journal_text(const TemporaryFolder& folder) {
  return read_file(folder / "run/journal.jsonl");
}

class RunUnder : public testing::TestWithParam<FaultCase> {};

TEST_P(RunUnder, FaultsEndsWithTheSameWeights) {
  const TemporaryFolder folder;
  DigitsRun run{.replicas = GetParam().replicas, .faults = GetParam().faults, .options = GetParam().options};

  const ProgramResult result = run_program(built_program("digits"), digits_arguments(run, folder));

  ASSERT_EQ(result.exit_code, 0) << result.output << journal_text(folder);
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(marks(folder), GetParam().faults.size()) << "not every fault struck\n" << journal_text(folder);
}

FaultCase phase(const std::string& name, const std::string& place) {
  return {.name = name, .faults = {place + ",fault=kill,phase=" + name}};
}

// Faults after a failure from which the run recovers.
FaultCase recovery_phase(const std::string& name, const std::string& place) {
  return {.name = name, .faults = {"rank=1,step=9,fault=kill", place + ",fault=kill,phase=" + name}};
}

INSTANTIATE_TEST_SUITE_P(Phases, RunUnder,
                         testing::Values(phase("start", "rank=1"), phase("data", "rank=1,step=10"),
                                         phase("forward", "rank=1,step=10"), phase("backward", "rank=1,step=10"),
                                         phase("reduce", "rank=1,step=10"), phase("before-update", "rank=1,step=10"),
                                         phase("after-update", "rank=1,step=10"), phase("callback", "rank=1,step=10"),
                                         phase("writing", "rank=0,step=12"), phase("before-rename", "rank=0,step=12"),
                                         phase("after-rename", "rank=0,step=12"), phase("pruning", "rank=0,step=12"),
                                         phase("shutdown", "rank=1"),
                                         recovery_phase("rendezvous", "rank=0,generation=0"),
                                         recovery_phase("broadcast", "rank=0")),
                         name_of);

// There is only one replica, so its death leaves no survivor.
INSTANTIATE_TEST_SUITE_P(
    Loads, RunUnder,
    testing::Values(
        FaultCase{"load-of-a-snapshot", {"rank=0,step=14,fault=kill", "rank=0,fault=kill,phase=load"}, 1},
        FaultCase{"load-of-a-savepoint",
                  {"rank=0,step=14,fault=kill", "rank=0,fault=kill,phase=load"},
                  1,
                  {{"--recover-from", "savepoint"}}},
        FaultCase{"load-of-a-damaged-savepoint",
                  {"rank=0,step=14,fault=kill", "rank=0,fault=damage,phase=load"},
                  1,
                  {{"--recover-from", "savepoint"}}},
        FaultCase{"snapshot", {"rank=0,step=10,fault=kill,phase=snapshot"}, 1, {{"--memory-snapshot-every", "5"}}}),
    name_of);

// Survivors wait for a new process, so that a process takes the place in which these faults strike.
INSTANTIATE_TEST_SUITE_P(Spares, RunUnder,
                         testing::Values(FaultCase{"spare-that-waits",
                                                   {"rank=2,fault=kill,phase=rendezvous", "rank=1,step=9,fault=kill"},
                                                   2,
                                                   {{"--spares", "1"}, {"--when-lost", "wait"}}},
                                         FaultCase{"spare-that-takes-over",
                                                   {"rank=1,step=9,fault=kill", "rank=1,fault=kill,phase=broadcast"},
                                                   2,
                                                   {{"--spares", "1"}, {"--when-lost", "wait"}}}),
                         name_of);

FaultCase kind(const std::string& name, const std::string& more = "") {
  return {.name = name, .faults = {"rank=1,step=10,fault=" + name + more}};
}

// The hang is noticed after 5 s. The limit holds for everything that replicas do, also on a busy machine.
FaultCase hanging_kind(const std::string& name) {
  FaultCase fault = kind(name);
  fault.options = {{"--hang-after", "5"}};
  return fault;
}

INSTANTIATE_TEST_SUITE_P(Kinds, RunUnder,
                         testing::Values(kind("stop"), kind("pause", ",duration_ms=50"), kind("segfault"),
                                         kind("exit0"), kind("exit1"), kind("throw"), kind("terminate"),
                                         hanging_kind("loop"), hanging_kind("hang"), kind("slow", ",factor=3,count=5"),
                                         kind("oom"), kind("close-channel"), kind("garbage"), kind("lose-beats"),
                                         kind("delay-beats", ",duration_ms=100")),
                         name_of);

// A fault that changes numbers is recorded when it changes them. Detection and repair come later.
TEST(Corruption, IsRecordedInTheJournalWithWhatItChanged) {
  for (const std::string target : {"loss", "gradient", "weight", "slot"}) {
    const TemporaryFolder folder;
    const DigitsRun run{.replicas = 1, .faults = {"rank=0,step=10,fault=flip,seed=5,target=" + target}};

    run_program(built_program("digits"), digits_arguments(run, folder));

    const std::vector<nlohmann::json> lines = journal_of(folder);
    const auto found = std::find_if(lines.begin(), lines.end(),
                                    [](const auto& line) { return line.at("event") == "corruption_injected"; });
    ASSERT_NE(found, lines.end()) << target << "\n" << journal_text(folder);
    EXPECT_EQ(marks(folder), 1U);
  }
}

// Training waited for the disk and gave up only after six minutes.
TEST(Disk, ThatHangsAtAnyMomentOfASavepointIsNoticedWhileTrainingGoesOn) {
  const std::map<std::string, std::string> operations{
      {"writing", "savepoint-"}, {"before-rename", "fsync of "}, {"after-rename", "fsync of the folder "}};
  for (const auto& [phase, operation] : operations) {
    SCOPED_TRACE(phase);
    const nlohmann::json report =
        completed({.faults = {"rank=0,step=8,fault=hang,phase=" + phase}, .options = {{"--hang-after", "2"}}});

    EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
    ASSERT_GE(report.at("restarts").size(), 1U);
    const std::string cause = report.at("restarts").at(0).at("cause");
    EXPECT_NE(cause.find("in the background"), std::string::npos) << cause;
    EXPECT_NE(cause.find(operation), std::string::npos) << cause;
    EXPECT_NE(cause.find("set a longer hang_after"), std::string::npos) << cause;
  }
}

TEST(Disk, ThatFailsAtAnyMomentOfASavepointIsRecordedInTheJournal) {
  for (const std::string fault : {"full-disk", "io-error"}) {
    for (const std::string phase : {"writing", "before-rename", "after-rename"}) {
      SCOPED_TRACE(fault + " " + phase);
      const TemporaryFolder folder;
      const DigitsRun run{.replicas = 1, .faults = {"rank=0,step=12,count=1,fault=" + fault + ",phase=" + phase}};

      run_program(built_program("digits"), digits_arguments(run, folder));

      const std::vector<nlohmann::json> lines = journal_of(folder);
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& line) {
        return line.at("event") == "savepoint_failed" && line.at("details").at("step") == 12;
      })) << journal_text(folder);
    }
  }
}

}  // namespace
}  // namespace holdfast
