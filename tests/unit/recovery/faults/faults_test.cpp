// When a fault is due, and that it strikes once in the life of a run directory. How faults strike is tested in
// fault_strikes_test.cpp.

#include "holdfast/recovery/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

Faults faults_of(const std::vector<std::string>& specifications, const Faults::Process& process) {
  std::vector<Fault> faults;
  for (const std::string& specification : specifications) faults.push_back(parse_fault(specification, 4));
  return Faults(std::move(faults), process);
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

TEST(Faults, FireOnceForEachListing) {
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

TEST(Faults, ReportThatTheyAreInjected) {
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

TEST(Faults, FireInAnyStepWhenNoneIsNamed) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,phase=load,fault=throw"}, {.run_directory = directory.path()});

  EXPECT_THROW(faults.reach(FaultPhase::load, 812), std::runtime_error);
}

TEST(Faults, FollowTheProcessToItsNextRank) {
  const TemporaryFolder directory;
  Faults faults = faults_of({"rank=1,step=5,fault=throw,generation=2"}, {.rank = 3, .run_directory = directory.path()});
  EXPECT_NO_THROW(faults.reach(FaultPhase::forward, 5));

  faults.move_to(1, 2);

  EXPECT_THROW(faults.reach(FaultPhase::forward, 5), std::runtime_error);
}

TEST(Faults, GiveEachCorruptionOnceWhereItIsDue) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=flip,target=gradient,seed=3", "rank=0,step=5,fault=nan"},
                                  {.run_directory = directory.path()});
  EXPECT_NO_THROW(faults.reach(FaultPhase::backward, 5));
  EXPECT_FALSE(faults.corruption(FaultPhase::backward, 4).has_value());

  const std::optional<Corruption> first = faults.corruption(FaultPhase::backward, 5);
  const std::optional<Corruption> second = faults.corruption(FaultPhase::backward, 5);

  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->target, CorruptionTarget::gradient);
  EXPECT_FALSE(first->is_nan);
  EXPECT_EQ(first->seed, 3U);
  EXPECT_EQ(second->target, CorruptionTarget::loss);
  EXPECT_TRUE(second->is_nan);
  EXPECT_FALSE(faults.corruption(FaultPhase::backward, 5).has_value());
}

TEST(Faults, SlowAReplicaForItsSteps) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=slow,factor=3,count=2"}, {.run_directory = directory.path()});

  EXPECT_EQ(faults.slowdown(4), 1);
  EXPECT_EQ(faults.slowdown(5), 3);
  EXPECT_EQ(faults.slowdown(6), 3);
  EXPECT_EQ(faults.slowdown(7), 1);
}

TEST(Faults, SlowAReplicaWithoutEndAndInItsNextGeneration) {
  const TemporaryFolder directory;
  Faults faults = faults_of({"rank=1,step=5,fault=slow"}, {.rank = 1, .run_directory = directory.path()});
  EXPECT_EQ(faults.slowdown(5), 2);

  faults.move_to(0, 1);

  EXPECT_EQ(faults.slowdown(1'000'000), 2);
}

TEST(Faults, MultiplyWhenTwoSlowAReplica) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=slow,factor=3", "rank=0,step=6,fault=slow,factor=2"},
                                  {.run_directory = directory.path()});

  EXPECT_EQ(faults.slowdown(5), 3);
  EXPECT_EQ(faults.slowdown(6), 6);
}

TEST(Faults, DoNotSlowAProcessThatFollowsTheSlowOne) {
  const TemporaryFolder directory;
  const std::vector<std::string> specifications{"rank=0,step=5,fault=slow"};
  EXPECT_EQ(faults_of(specifications, {.run_directory = directory.path()}).slowdown(5), 2);

  EXPECT_EQ(faults_of(specifications, {.run_directory = directory.path()}).slowdown(5), 1);
}

TEST(Faults, FailTheirCountOfFileOperations) {
  const TemporaryFolder directory;
  const Faults faults =
      faults_of({"rank=0,step=5,fault=full-disk,phase=before-rename,count=2"}, {.run_directory = directory.path()});

  EXPECT_EQ(faults.file_failure(FaultPhase::writing, 5, FileNeed::space), std::nullopt);
  EXPECT_EQ(faults.file_failure(FaultPhase::before_rename, 5, FileNeed::space), ENOSPC);
  EXPECT_EQ(faults.file_failure(FaultPhase::pruning, 6, FileNeed::space), ENOSPC);
  EXPECT_EQ(faults.file_failure(FaultPhase::pruning, 6, FileNeed::space), std::nullopt);
}

TEST(Faults, FailAllFileOperationsWithoutACount) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=io-error"}, {.run_directory = directory.path()});

  for (int operation = 0; operation < 1000; ++operation) {
    ASSERT_EQ(faults.file_failure(FaultPhase::writing, 5 + operation, FileNeed::space), EIO);
  }
}

TEST(Faults, FailOnlyWhatNeedsSpaceWhenTheDiskIsFull) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=full-disk"}, {.run_directory = directory.path()});
  EXPECT_EQ(faults.file_failure(FaultPhase::writing, 5, FileNeed::space), ENOSPC);

  EXPECT_EQ(faults.file_failure(std::nullopt, 5, FileNeed::none), std::nullopt);
  EXPECT_EQ(faults.file_failure(std::nullopt, 5, FileNeed::space), ENOSPC);
}

TEST(Faults, StrikeOnceAmongManyThreads) {
  const TemporaryFolder directory;
  const Faults faults = faults_of({"rank=0,step=5,fault=throw", "rank=0,step=5,fault=io-error,count=1"},
                                  {.run_directory = directory.path()});
  std::atomic<int> thrown = 0;
  std::atomic<int> failed = 0;

  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (faults.file_failure(FaultPhase::writing, 5, FileNeed::space)) ++failed;
        try {
          faults.reach(FaultPhase::forward, 5);
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      });
    }
  }

  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(failed, 1);
}

TEST(FaultsOfTheEnvironment, AreSeparatedBySemicolons) {
  ::setenv(kFaultsVariable, "rank=1,step=2,fault=kill;;rank=0,step=3,fault=hang;", 1);
  const std::vector<std::string> faults = faults_of_environment();
  ::unsetenv(kFaultsVariable);

  EXPECT_THAT(faults, ::testing::ElementsAre("rank=1,step=2,fault=kill", "rank=0,step=3,fault=hang"));
  EXPECT_TRUE(faults_of_environment().empty());
}

}  // namespace
}  // namespace holdfast::recovery
