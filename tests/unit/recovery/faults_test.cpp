#include "holdfast/recovery/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& specification) {
  try {
    parse_fault(specification, 4);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no complaint";
}

Faults faults_of(const std::vector<std::string>& specifications, const Faults::Place& place) {
  std::vector<Fault> faults;
  for (const std::string& specification : specifications) faults.push_back(parse_fault(specification, 4));
  return Faults(std::move(faults), place);
}

TEST(ParseFault, ReadsAllKeysInAnyOrder) {
  const Fault fault = parse_fault("phase=save,fault=kill-watchdog,generation=2,step=120,rank=3", 4);

  EXPECT_EQ(fault.rank, 3);
  EXPECT_EQ(fault.step, 120);
  EXPECT_EQ(fault.phase, FaultPhase::save);
  EXPECT_EQ(fault.kind, FaultKind::kill_watchdog);
  EXPECT_EQ(fault.generation, 2);
}

TEST(ParseFault, TakesComputeInAnyGenerationWhenNothingIsSaid) {
  const Fault fault = parse_fault("rank=0,step=0,fault=stop", 4);

  EXPECT_EQ(fault.phase, FaultPhase::compute);
  EXPECT_FALSE(fault.generation.has_value());
}

TEST(ParseFault, ReadsEveryKind) {
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=kill", 1).kind, FaultKind::kill);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=stop", 1).kind, FaultKind::stop);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=throw", 1).kind, FaultKind::throw_exception);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=hang", 1).kind, FaultKind::hang);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=exit", 1).kind, FaultKind::exit);
}

TEST(ParseFault, SaysWhatIsAllowed) {
  EXPECT_THAT(complaint("rank=0,step=1,fault=explode"), HasSubstr("kill, stop, throw, hang, exit, kill-watchdog"));
  EXPECT_THAT(complaint("rank=0,step=1,fault=kill,phase=lunch"), HasSubstr("compute, reduce, update, save"));
  EXPECT_THAT(complaint("rank=0,step=1,fault=kill,when=now"), HasSubstr("rank, step, fault, phase and generation"));
  EXPECT_THAT(complaint("rank=4,step=1,fault=kill"), HasSubstr("from 0 to 3"));
}

TEST(ParseFault, RefusesWhatIsIncompleteOrMalformed) {
  EXPECT_THAT(complaint("rank=0,step=1"), HasSubstr("lacks fault="));
  EXPECT_THAT(complaint("rank=0,fault=kill"), HasSubstr("lacks step="));
  EXPECT_THAT(complaint("step=0,fault=kill"), HasSubstr("lacks rank="));
  EXPECT_THAT(complaint("rank=0,rank=1,step=1,fault=kill"), HasSubstr("rank twice"));
  EXPECT_THAT(complaint(""), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(complaint("rank=0,step=1,fault=kill,"), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(complaint("rank=-1,step=1,fault=kill"), HasSubstr("rank=-1"));
  EXPECT_THAT(complaint("rank=0,step=1x,fault=kill"), HasSubstr("step=1x"));
  EXPECT_THAT(complaint("rank=,step=1,fault=kill"), HasSubstr("rank="));
  EXPECT_THAT(complaint("rank=0,step=99999999999999999999,fault=kill"), HasSubstr("step="));
}

TEST(Faults, FireAtTheirRankStepAndPhaseOnly) {
  const TemporaryFolder directory;
  const std::vector<std::string> specifications{"rank=1,step=5,fault=throw,phase=update"};
  const Faults elsewhere = faults_of(specifications, {.rank = 0, .run_directory = directory.path()});
  const Faults here = faults_of(specifications, {.rank = 1, .run_directory = directory.path()});

  EXPECT_NO_THROW(elsewhere.reach(FaultPhase::update, 5));
  EXPECT_NO_THROW(here.reach(FaultPhase::update, 4));
  EXPECT_NO_THROW(here.reach(FaultPhase::compute, 5));
  EXPECT_THROW(here.reach(FaultPhase::update, 5), std::runtime_error);
}

TEST(Faults, FireOnceEvenAfterARestart) {
  const TemporaryFolder directory;
  const std::vector<std::string> specifications{"rank=0,step=5,fault=throw"};
  const Faults first = faults_of(specifications, {.generation = 0, .run_directory = directory.path()});
  EXPECT_THROW(first.reach(FaultPhase::compute, 5), std::runtime_error);

  const Faults second = faults_of(specifications, {.generation = 1, .run_directory = directory.path()});

  EXPECT_NO_THROW(first.reach(FaultPhase::compute, 5));
  EXPECT_NO_THROW(second.reach(FaultPhase::compute, 5));
}

TEST(Faults, FireAsOftenAsTheyAreListed) {
  const TemporaryFolder directory;
  const std::string fault = "rank=0,step=5,fault=throw";
  const Faults faults = faults_of({fault, fault}, {.run_directory = directory.path()});

  EXPECT_THROW(faults.reach(FaultPhase::compute, 5), std::runtime_error);
  EXPECT_THROW(faults.reach(FaultPhase::compute, 5), std::runtime_error);
  EXPECT_NO_THROW(faults.reach(FaultPhase::compute, 5));
}

TEST(Faults, FireInTheirGenerationOnly) {
  const TemporaryFolder directory;
  const std::vector<std::string> specifications{"rank=0,step=5,fault=throw,generation=1"};
  const Faults before = faults_of(specifications, {.generation = 0, .run_directory = directory.path()});
  const Faults then = faults_of(specifications, {.generation = 1, .run_directory = directory.path()});

  EXPECT_NO_THROW(before.reach(FaultPhase::compute, 5));
  EXPECT_THROW(then.reach(FaultPhase::compute, 5), std::runtime_error);
}

TEST(Faults, SayThatTheyAreInjected) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=throw"}, {.run_directory = directory.path()});
  std::string what;

  try {
    faults.reach(FaultPhase::compute, 5);
  } catch (const std::runtime_error& error) {
    what = error.what();
  }

  EXPECT_EQ(what, "injected exception (rank=0,step=5,fault=throw)");
}

TEST(Faults, DoNotFireWhenTheyCannotBeMarked) {
  const Faults faults = faults_of({"rank=0,step=5,fault=kill"}, {.run_directory = "/dev/null"});

  EXPECT_THROW(faults.reach(FaultPhase::compute, 5), Error);
}

TEST(FaultsDeathTest, EndTheProcessAsTheirKindSays) {
  const TemporaryFolder directory;
  const Faults faults =
      faults_of({"rank=0,step=1,fault=kill", "rank=0,step=2,fault=exit"}, {.run_directory = directory.path()});

  EXPECT_EXIT(faults.reach(FaultPhase::compute, 1), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(faults.reach(FaultPhase::compute, 2), testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace holdfast::recovery
