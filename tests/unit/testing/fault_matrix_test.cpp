// The cases of the fault matrix: which exist, how they are named, and that each fault can be read back.

#include "holdfast/testing/fault_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace holdfast::resilience {
namespace {

using recovery::FaultKind;
using recovery::FaultPhase;
using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& entry : cases) names.push_back(entry.name);
  return names;
}

TEST(FaultMatrix, HasACellForEachRankAndNumberOfReplicas) {
  const std::vector<Case> cases = fault_matrix({.kinds = {FaultKind::kill}, .phases = {FaultPhase::forward}});

  EXPECT_THAT(names_of(cases), ElementsAre("kill-forward-first-2", "kill-forward-last-2", "kill-forward-first-4",
                                           "kill-forward-last-4"));
  EXPECT_THAT(cases[3].faults, ElementsAre("rank=3,step=10,phase=forward,fault=kill"));
  EXPECT_EQ(cases[3].replicas, 4);
}

TEST(FaultMatrix, LeavesOutCasesThatMakeNoSense) {
  EXPECT_THAT(fault_matrix({.kinds = {FaultKind::full_disk}, .phases = {FaultPhase::forward}}), ElementsAre());
  EXPECT_THAT(names_of(fault_matrix({.kinds = {FaultKind::kill}, .phases = {FaultPhase::writing}, .replicas = {2}})),
              ElementsAre("kill-writing-first-2"))
      << "rank 0 alone writes";
}

TEST(FaultMatrix, BeginsARecoveryForFaultsThatStrikeDuringOne) {
  const FaultMatrix broadcast{.kinds = {FaultKind::stop}, .phases = {FaultPhase::broadcast}, .replicas = {3}};
  const FaultMatrix load{.kinds = {FaultKind::kill}, .phases = {FaultPhase::load}, .replicas = {2}};

  EXPECT_THAT(fault_matrix(broadcast).front().faults,
              ElementsAre("rank=2,step=10,phase=forward,fault=kill", "rank=0,phase=broadcast,fault=stop"));
  EXPECT_THAT(fault_matrix(load).front().faults,
              ElementsAre("rank=0,step=10,phase=forward,fault=kill", "rank=1,step=10,phase=forward,fault=kill",
                          "rank=0,phase=load,fault=kill"));
}

TEST(FaultMatrix, HasEveryKindAndPhaseWithANameOfItsOwn) {
  const std::vector<Case> cases = fault_matrix({});

  std::set<std::string> names;
  std::set<FaultKind> kinds;
  std::set<FaultPhase> phases;
  for (const Case& entry : cases) {
    names.insert(entry.name);
    const recovery::Fault fault = recovery::parse_fault(entry.faults.back(), entry.replicas);
    kinds.insert(fault.kind);
    phases.insert(fault.phase);
  }
  EXPECT_EQ(names.size(), cases.size());
  EXPECT_EQ(kinds.size(), recovery::fault_kinds().size());
  EXPECT_EQ(phases.size(), recovery::fault_phases().size());
}

TEST(FaultPairs, StrikeTheNewcomerOrASurvivor) {
  const std::vector<Case> cases = fault_pairs(
      {.kinds = {FaultKind::stop}, .phases = {FaultPhase::reduce}, .ranks = {MatrixRank::last}, .replicas = {3}});

  EXPECT_THAT(names_of(cases), ElementsAre("kill-last-then-stop-reduce-same-3", "kill-last-then-stop-reduce-other-3"));
  EXPECT_THAT(cases[0].faults, ElementsAre("rank=2,step=10,phase=forward,fault=kill",
                                           "rank=2,step=10,phase=reduce,generation=1,fault=stop"));
  EXPECT_THAT(cases[1].faults.back(), "rank=0,step=10,phase=reduce,generation=1,fault=stop");
}

TEST(FaultPairs, StrikeTheSecondProcessThatStarts) {
  const std::vector<Case> cases = fault_pairs(
      {.kinds = {FaultKind::exit1}, .phases = {FaultPhase::start}, .ranks = {MatrixRank::first}, .replicas = {2}});

  EXPECT_THAT(names_of(cases), ElementsAre("kill-first-then-exit1-start-same-2"));
  EXPECT_THAT(cases[0].faults, ElementsAre("rank=0,phase=start,fault=kill", "rank=0,phase=start,fault=exit1"));
}

TEST(FaultPairs, StrikeTwoReplicasInTheSameStep) {
  const std::vector<Case> cases = fault_pairs(
      {.kinds = {FaultKind::kill}, .phases = {FaultPhase::forward}, .ranks = {MatrixRank::first}, .replicas = {2}});

  ASSERT_FALSE(cases.empty());
  EXPECT_EQ(cases[0].name, "kill-first-then-kill-at-once-other-2");
  EXPECT_THAT(cases[0].faults,
              ElementsAre("rank=0,step=10,phase=forward,fault=kill", "rank=1,step=10,phase=forward,fault=kill"));
}

TEST(FaultPairs, HaveEveryPossibleKindWithANameOfItsOwn) {
  const std::vector<Case> cases = fault_pairs({});

  const std::vector<std::string> names = names_of(cases);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), cases.size());
  for (const Case& entry : cases) {
    for (const std::string& fault : entry.faults) EXPECT_NO_THROW(recovery::parse_fault(fault, entry.replicas));
  }
}

TEST(Sample, IsTheSameForASeedAndKeepsTheOrder) {
  const std::vector<std::string> all = names_of(fault_matrix({}));

  const std::vector<std::string> sample = names_of(sample_of(fault_matrix({}), 20, 5));

  ASSERT_EQ(sample.size(), 20U);
  EXPECT_EQ(sample, names_of(sample_of(fault_matrix({}), 20, 5)));
  EXPECT_NE(sample, names_of(sample_of(fault_matrix({}), 20, 6)));
  auto place = all.begin();
  for (const std::string& name : sample) {
    place = std::find(place, all.end(), name);
    ASSERT_NE(place, all.end()) << name;
  }
}

}  // namespace
}  // namespace holdfast::resilience
