// Properties of random plans over many seeds. Tests that quote a command are findings of `holdfast chaos`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "holdfast/recovery/fault_plan.h"
#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using testing::HasSubstr;

std::string random_plan_complaint(const RandomFaultPlan& plan) {
  return complaint_about([&] { random_fault_plan(plan); });
}

TEST(RandomFaultPlan, IsAFunctionOfItsSeed) {
  const RandomFaultPlan plan{.faults = 50, .seed = 7, .replicas = 4, .steps = 1000};
  RandomFaultPlan other = plan;
  other.seed = 8;

  EXPECT_EQ(random_fault_plan(plan), random_fault_plan(plan));
  EXPECT_NE(random_fault_plan(plan), random_fault_plan(other));
}

// A finding of one host is replayed on another. This plan must not change while kinds and phases do not.
TEST(RandomFaultPlan, IsTheSameOnEveryHost) {
  const std::vector<Fault> faults = random_fault_plan({.faults = 3, .seed = 1, .replicas = 4, .steps = 1000});

  ASSERT_EQ(faults.size(), 3U);
  EXPECT_EQ(faults[0].specification, "rank=0,phase=load,fault=garbage,seed=1442970410223618161");
  EXPECT_EQ(faults[1].specification, "rank=3,step=303,phase=callback,fault=lose-beats");
  EXPECT_EQ(faults[2].specification, "rank=0,step=418,phase=after-rename,fault=full-disk,count=9");
}

TEST(RandomFaultPlan, PrintsEachFaultSoThatItReadsAsTheSame) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const Fault& fault : random_fault_plan({.faults = 100, .seed = seed, .replicas = 4, .steps = 1000})) {
      EXPECT_EQ(parse_fault(to_string(fault), 4), fault);
      EXPECT_EQ(to_string(fault), fault.specification);
    }
  }
}

TEST(RandomFaultPlan, HoldsOnlyWhatWasAskedFor) {
  const std::vector<Fault> faults = random_fault_plan({.faults = 500,
                                                       .seed = 3,
                                                       .replicas = 2,
                                                       .steps = 10,
                                                       .kinds = {FaultKind::kill, FaultKind::flip},
                                                       .phases = {FaultPhase::backward, FaultPhase::writing}});

  EXPECT_EQ(faults.size(), 500U);
  for (const Fault& fault : faults) {
    EXPECT_TRUE(fault.kind == FaultKind::kill || fault.kind == FaultKind::flip) << fault.specification;
    EXPECT_TRUE(fault.phase == FaultPhase::backward || fault.phase == FaultPhase::writing) << fault.specification;
    EXPECT_TRUE(fault.rank == 0 || (fault.rank == 1 && fault.phase == FaultPhase::backward)) << fault.specification;
    EXPECT_TRUE(fault.step >= 0 && fault.step < 10) << fault.specification;
  }
}

TEST(RandomFaultPlan, StrikesSavepointsAtStepsWhereTheyAreWritten) {
  const std::vector<Fault> faults = random_fault_plan({.faults = 300,
                                                       .seed = 3,
                                                       .steps = 100,
                                                       .phases = {FaultPhase::before_rename, FaultPhase::data},
                                                       .savepoint_steps = {20, 40}});

  std::map<std::int64_t, int> of_savepoints;
  std::map<std::int64_t, int> of_others;
  for (const Fault& fault : faults) ++(is_of_savepoint(fault.phase) ? of_savepoints : of_others)[*fault.step];
  EXPECT_EQ(of_savepoints.size(), 2U);
  EXPECT_TRUE(of_savepoints.contains(20) && of_savepoints.contains(40));
  EXPECT_GT(of_others.size(), 10U);
}

TEST(RandomFaultPlan, LeavesNoKindPhaseOrRankOut) {
  std::map<FaultKind, int> kinds;
  std::map<FaultPhase, int> phases;
  std::map<int, int> ranks;
  for (const Fault& fault : random_fault_plan({.faults = 5000, .seed = 0, .replicas = 4, .steps = 1000})) {
    ++kinds[fault.kind];
    ++phases[fault.phase];
    ++ranks[fault.rank];
  }

  EXPECT_EQ(kinds.size(), fault_kinds().size() - 1);
  EXPECT_FALSE(kinds.contains(FaultKind::kill_watchdog));
  EXPECT_EQ(phases.size(), fault_phases().size());
  EXPECT_EQ(ranks.size(), 4U);
}

// The plan of `holdfast chaos --faults`.
RandomFaultPlan plan_for_one_run(std::uint64_t seed) {
  return {
      .faults = 6,
      .seed = seed,
      .replicas = 3,
      .steps = 100,
      .phases = {FaultPhase::start, FaultPhase::data, FaultPhase::forward, FaultPhase::backward, FaultPhase::callback,
                 FaultPhase::shutdown, FaultPhase::writing, FaultPhase::before_rename, FaultPhase::after_rename},
      .savepoint_steps = {20, 40, 60, 80, 100},
      .runs = RunsToStrike::one};
}

// `holdfast chaos --faults 4 --seed 3` drew a fault before there was a savepoint, and only three of the four struck.
TEST(RandomFaultPlan, DamagesNoSavepointBeforeTheFirst) {
  int damages = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const Fault& fault : random_fault_plan(plan_for_one_run(seed))) {
      if (fault.kind != FaultKind::damage) continue;
      ++damages;
      const bool is_late = fault.step.value_or(-1) > 40 || fault.phase == FaultPhase::shutdown;
      const bool is_of_one = is_of_savepoint(fault.phase) && fault.step >= 40;
      EXPECT_TRUE(is_late || is_of_one || fault.phase == FaultPhase::after_rename) << fault.specification;
    }
  }
  EXPECT_GT(damages, 10);
}

TEST(RandomFaultPlan, DamagesNoSavepointOfARunWithoutSavepoints) {
  RandomFaultPlan plan = plan_for_one_run(0);
  plan.kinds = {FaultKind::damage};
  plan.savepoint_steps = {};

  EXPECT_THAT(random_plan_complaint(plan),
              HasSubstr("a run of 100 steps and 0 savepoints has no room for more than 0"));
}

// `holdfast chaos --faults 5 --seed 30` let the writer of one savepoint hang. It waited for a fault in the next
// savepoint, which training had left out.
TEST(RandomFaultPlan, StrikesSavepointsOnceInOneRun) {
  int struck = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<Fault> faults = random_fault_plan(plan_for_one_run(seed));
    const auto of_savepoints =
        std::count_if(faults.begin(), faults.end(), [](const Fault& fault) { return is_of_savepoint(fault.phase); });
    EXPECT_LE(of_savepoints, 1) << "seed " << seed;
    struck += static_cast<int>(of_savepoints);
  }
  EXPECT_GT(struck, 100);
}

// The watchdog waits longer for a loop while data is read than `holdfast chaos` does for the whole run.
TEST(RandomFaultPlan, DrawsNoFaultThatIsNoticedOnlyAfterMinutes) {
  const auto is_late = [](const Fault& fault) {
    return (fault.kind == FaultKind::loop && fault.phase == FaultPhase::data) ||
           (fault.kind == FaultKind::hang && fault.phase == FaultPhase::start);
  };
  int loops = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    for (const Fault& fault : random_fault_plan(plan_for_one_run(seed))) {
      EXPECT_FALSE(is_late(fault)) << "seed " << seed << ": " << fault.specification;
      loops += fault.kind == FaultKind::loop ? 1 : 0;
    }
  }
  EXPECT_GT(loops, 10);
}

// `holdfast chaos --faults 5 --seed 26` filled the disk for the last savepoint, and waited for a fault at the end of
// the run.
TEST(RandomFaultPlan, StrikesNoEndOfARunWhoseFilesFail) {
  int ends = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<Fault> faults = random_fault_plan(plan_for_one_run(seed));
    const auto has = [&](auto condition) { return std::any_of(faults.begin(), faults.end(), condition); };
    const bool strikes_the_end = has([](const Fault& fault) { return fault.phase == FaultPhase::shutdown; });
    const bool fails_files =
        has([](const Fault& fault) { return fault.kind == FaultKind::full_disk || fault.kind == FaultKind::io_error; });
    EXPECT_FALSE(strikes_the_end && fails_files) << "seed " << seed;
    ends += strikes_the_end ? 1 : 0;
  }
  EXPECT_GT(ends, 10);
}

// Each death may leave one replica less, and the ranks of the others move up.
TEST(RandomFaultPlan, StrikesOnlyRanksThatCertainlyExistInOneRun) {
  int of_higher_ranks = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    int lost = 0;
    for (const Fault& fault : random_fault_plan(plan_for_one_run(seed))) {
      if (fault.phase == FaultPhase::shutdown) continue;  // always the last, whatever its position in the list
      if (fault.step) {
        EXPECT_LT(fault.rank, std::max(1, 3 - lost)) << "seed " << seed << ": " << fault.specification;
      }
      of_higher_ranks += fault.rank > 0 ? 1 : 0;
      // A replica that is stopped for a while may be replaced like one that hangs.
      if (fault.kind == FaultKind::kill || fault.kind == FaultKind::segfault || fault.kind == FaultKind::pause) ++lost;
    }
  }
  EXPECT_GT(of_higher_ranks, 100);
}

TEST(RandomFaultPlan, StrikesNoStepAThirdTime) {
  RandomFaultPlan plan = plan_for_one_run(5);
  plan.faults = 40;
  plan.replicas = 1;  // rank 0 is always there
  plan.steps = 20;
  plan.phases = {FaultPhase::data};

  std::map<std::int64_t, int> of_step;
  for (const Fault& fault : random_fault_plan(plan)) EXPECT_LE(++of_step[*fault.step], 2);
  RandomFaultPlan of_three = plan;
  of_three.replicas = 3;
  of_three.faults = 20;
  of_step.clear();
  for (const Fault& fault : random_fault_plan(of_three)) EXPECT_LE(++of_step[*fault.step], 2);
  plan.faults = 41;
  EXPECT_THAT(random_plan_complaint(plan), HasSubstr("ask for fewer, or for a run for each"));
}

TEST(RandomFaultPlan, GivesEachRunAFaultThatStrikes) {
  RandomFaultPlan plan = plan_for_one_run(1);
  plan.faults = 200;
  plan.runs = RunsToStrike::one_for_each_fault;

  const std::vector<Fault> faults = random_fault_plan(plan);

  EXPECT_EQ(faults.size(), 200U);
  for (const Fault& fault : faults) {
    EXPECT_TRUE(fault.kind != FaultKind::damage || fault.phase == FaultPhase::shutdown || fault.step >= 20)
        << fault.specification;
  }
}

TEST(RandomFaultPlan, IsOrderedByStep) {
  const std::vector<Fault> faults = random_fault_plan({.faults = 200, .seed = 5, .replicas = 4, .steps = 1000});

  EXPECT_TRUE(std::is_sorted(faults.begin(), faults.end(),
                             [](const Fault& a, const Fault& b) { return a.step.value_or(-1) < b.step.value_or(-1); }));
}

TEST(RandomFaultPlan, TakesTheLargestNumbers) {
  const std::vector<Fault> faults =
      random_fault_plan({.faults = 100, .seed = 5, .steps = std::numeric_limits<std::int64_t>::max()});

  EXPECT_TRUE(
      std::all_of(faults.begin(), faults.end(), [](const Fault& fault) { return fault.step.value_or(0) >= 0; }));
}

TEST(RandomFaultPlan, RefusesImpossiblePlans) {
  EXPECT_THAT(random_plan_complaint({.faults = -1}), HasSubstr("-1 faults; from 0 to"));
  EXPECT_THAT(random_plan_complaint({.replicas = 0}), HasSubstr("0 replicas; from 1 to"));
  EXPECT_THAT(random_plan_complaint({.steps = 0}), HasSubstr("0 steps; from 1 to"));
  EXPECT_THAT(random_plan_complaint({.kinds = {FaultKind::slow}, .phases = {FaultPhase::reduce}}),
              HasSubstr("none of its kinds can strike in any of its phases"));
}

}  // namespace
}  // namespace holdfast::recovery
