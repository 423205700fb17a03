// Specifications as users type them. Each wrong one is refused with a sentence that says what is allowed.

#include "holdfast/recovery/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "unit/recovery/support/complaint.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string fault_complaint(const std::string& specification) {
  return complaint_about([&] { parse_fault(specification, 4); });
}

std::string plan_complaint(const std::string& text) {
  return complaint_about([&] { parse_fault_plan(text, 4); });
}

std::vector<std::string> specifications(const std::vector<Fault>& faults) {
  std::vector<std::string> texts;
  for (const Fault& fault : faults) texts.push_back(fault.specification);
  return texts;
}

// Every kind in every phase with every target, with a step where one is allowed.
std::vector<Fault> all_combinations() {
  std::vector<Fault> faults;
  for (const FaultKind kind : fault_kinds()) {
    for (const FaultPhase phase : fault_phases()) {
      for (const CorruptionTarget target : corruption_targets()) {
        if (!takes_target(kind) && target != CorruptionTarget::weight) continue;
        Fault fault{.phase = phase, .kind = kind, .duration = 7ms, .factor = 1.5, .seed = 9, .target = target};
        if (may_have_step(phase)) fault.step = 120;
        faults.push_back(fault);
      }
    }
  }
  return faults;
}

TEST(ParseFault, ReadsAllKeysInAnyOrder) {
  const Fault fault = parse_fault("phase=save,fault=kill-watchdog,generation=2,step=120,rank=0", 4);

  EXPECT_EQ(fault.rank, 0);
  EXPECT_EQ(fault.step, 120);
  EXPECT_EQ(fault.phase, FaultPhase::before_rename);
  EXPECT_EQ(fault.kind, FaultKind::kill_watchdog);
  EXPECT_EQ(fault.generation, 2);
}

TEST(ParseFault, ReadsWhatTheKindTakes) {
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=pause,duration_ms=20", 1).duration, 20ms);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=slow,factor=2.5,count=7", 1).factor, 2.5);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=slow,factor=2.5,count=7", 1).count, 7);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=flip,target=slot,seed=99", 1).target, CorruptionTarget::slot);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=flip,target=slot,seed=99", 1).seed, 99U);
}

TEST(ParseFault, DefaultsToForwardInAnyGeneration) {
  const Fault fault = parse_fault("rank=0,step=0,fault=stop", 4);

  EXPECT_EQ(fault.phase, FaultPhase::forward);
  EXPECT_FALSE(fault.generation.has_value());
}

TEST(ParseFault, DefaultsToAPhaseWhereTheKindCanStrike) {
  EXPECT_EQ(parse_fault("rank=0,step=0,fault=nan", 4).phase, FaultPhase::backward);
  EXPECT_EQ(parse_fault("rank=0,step=0,fault=flip", 4).phase, FaultPhase::after_update);
  EXPECT_EQ(parse_fault("rank=0,step=0,fault=full-disk", 4).phase, FaultPhase::writing);
}

TEST(ParseFault, AcceptsTheOldNames) {
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=kill,phase=compute", 1).phase, FaultPhase::forward);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=kill,phase=update", 1).phase, FaultPhase::before_update);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=kill,phase=save", 1).phase, FaultPhase::before_rename);
  EXPECT_EQ(parse_fault("rank=0,step=1,fault=sleep", 1).kind, FaultKind::hang);
}

TEST(ParseFault, SaysWhatIsAllowed) {
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=explode"), HasSubstr("kill, stop, pause, segfault"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=kill,phase=lunch"), HasSubstr("start, load, data, forward"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=flip,target=mood"), HasSubstr("loss, gradient, weight, slot"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=kill,when=now"), HasSubstr("rank, step, fault, phase"));
  EXPECT_THAT(fault_complaint("rank=4,step=1,fault=kill"), HasSubstr("from 0 to 3"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=pause,duration_ms=0"), HasSubstr("from 1 to 3600000"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=slow,factor=1"), HasSubstr("above 1, up to 1000"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=slow,factor=nan"), HasSubstr("above 1, up to 1000"));
}

TEST(ParseFault, RefusesIncompleteAndMalformedSpecifications) {
  EXPECT_THAT(fault_complaint("rank=0,step=1"), HasSubstr("lacks fault="));
  EXPECT_THAT(fault_complaint("rank=0,fault=kill"), HasSubstr("lacks step="));
  EXPECT_THAT(fault_complaint("step=0,fault=kill"), HasSubstr("lacks rank="));
  EXPECT_THAT(fault_complaint("rank=0,rank=1,step=1,fault=kill"), HasSubstr("rank twice"));
  EXPECT_THAT(fault_complaint(""), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=kill,"), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(fault_complaint("rank=-1,step=1,fault=kill"), HasSubstr("rank=-1"));
  EXPECT_THAT(fault_complaint("rank=0,step=1x,fault=kill"), HasSubstr("step=1x"));
  EXPECT_THAT(fault_complaint("rank=,step=1,fault=kill"), HasSubstr("rank="));
  EXPECT_THAT(fault_complaint("rank=0,step=99999999999999999999,fault=kill"), HasSubstr("step="));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault="), HasSubstr("fault=;"));
}

TEST(ParseFault, RefusesAKeyThatTheKindDoesNotTake) {
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=kill,factor=2"),
              HasSubstr("factor=, which fault=kill does not take"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=slow,seed=2"), HasSubstr("seed=, which fault=slow does not take"));
}

TEST(ParseFault, SaysWhyAKindCannotStrikeInAPhase) {
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=slow,phase=reduce"), HasSubstr("it lasts whole steps"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=io-error,phase=forward"), HasSubstr("files of savepoints"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=flip,target=loss,phase=data"),
              HasSubstr("a loss can be changed only while it exists"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=flip,target=loss,phase=data"),
              HasSubstr("use one of the phases backward"));
  EXPECT_THAT(fault_complaint("rank=0,step=1,fault=kill,phase=rendezvous"),
              HasSubstr("belongs to no step; leave step= out"));
  EXPECT_THAT(fault_complaint("rank=0,fault=kill,phase=start,generation=1"), HasSubstr("leave generation= out"));
  EXPECT_THAT(fault_complaint("rank=3,step=1,fault=kill,phase=writing"),
              HasSubstr("only rank 0 reaches phase=writing"));
}

TEST(ParseFault, ReadsWhatToStringWrites) {
  int count = 0;
  for (Fault fault : all_combinations()) {
    if (!objection_to(fault).empty()) continue;
    const Fault first = parse_fault(to_string(fault), 4);

    const Fault second = parse_fault(to_string(first), 4);

    EXPECT_EQ(second, first) << to_string(fault);
    EXPECT_EQ(to_string(second), to_string(fault));
    ++count;
  }
  EXPECT_GT(count, 200);
}

// A combination parses exactly when there is no objection to it.
TEST(ParseFault, RefusesExactlyTheFaultsWithAnObjection) {
  for (const Fault& fault : all_combinations()) {
    const std::string objection = objection_to(fault);
    const std::string text = to_string(fault);

    EXPECT_THAT(fault_complaint(text), objection.empty() ? HasSubstr("no complaint") : HasSubstr(objection)) << text;
  }
}

TEST(ParseFault, HasAPhaseForEveryKindAndAKindForEveryPhase) {
  std::set<FaultKind> kinds;
  std::set<FaultPhase> phases;
  for (const Fault& fault : all_combinations()) {
    if (!objection_to(fault).empty()) continue;
    kinds.insert(fault.kind);
    phases.insert(fault.phase);
  }

  EXPECT_EQ(kinds.size(), fault_kinds().size());
  EXPECT_EQ(phases.size(), fault_phases().size());
}

TEST(ParseFault, NamesNothingTwice) {
  std::set<std::string_view> kinds;
  for (const FaultKind kind : fault_kinds()) kinds.insert(to_string(kind));
  std::set<std::string_view> phases;
  for (const FaultPhase phase : fault_phases()) phases.insert(to_string(phase));

  EXPECT_EQ(kinds.size(), fault_kinds().size());
  EXPECT_EQ(phases.size(), fault_phases().size());
}

// Texts are cut out of a specification or inserted into it. It is read, or refused with a sentence.
TEST(ParseFault, FailsOnlyWithASentence) {
  const std::string whole = "rank=1,step=5,phase=before-update,generation=1,fault=flip,target=gradient,seed=3";
  for (std::size_t begin = 0; begin < whole.size(); ++begin) {
    for (std::size_t bytes = 1; begin + bytes <= whole.size(); ++bytes) {
      std::string text = whole;
      text.erase(begin, bytes);
      const std::string answer = fault_complaint(text);
      EXPECT_TRUE(answer == "no complaint" || answer.starts_with("the fault \"")) << text << ": " << answer;
    }
  }
}

TEST(ParseFaultPlan, ReadsOneFaultPerLine) {
  const std::vector<Fault> faults = parse_fault_plan(
      "# two at once\n"
      "rank=0,step=5,fault=kill\n"
      "\n"
      "  rank=1,step=5,fault=stop  # the other\r\n"
      "rank=2,phase=rendezvous,generation=1,fault=exit0",
      4);

  EXPECT_THAT(specifications(faults), testing::ElementsAre("rank=0,step=5,fault=kill", "rank=1,step=5,fault=stop",
                                                           "rank=2,phase=rendezvous,generation=1,fault=exit0"));
}

TEST(ParseFaultPlan, ReadsAJsonListOfStringsAndObjects) {
  const std::vector<Fault> faults =
      parse_fault_plan(R"( ["rank=0,step=5,fault=kill", {"rank": 1, "step": 6, "fault": "slow", "factor": 2.5}] )", 4);

  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].specification, "rank=0,step=5,fault=kill");
  EXPECT_EQ(faults[1].kind, FaultKind::slow);
  EXPECT_EQ(faults[1].factor, 2.5);
}

TEST(ParseFaultPlan, ReadsAnEmptyPlanAsNoFaults) {
  EXPECT_THAT(parse_fault_plan("", 4), IsEmpty());
  EXPECT_THAT(parse_fault_plan("# nothing\n\n", 4), IsEmpty());
  EXPECT_THAT(parse_fault_plan("[]", 4), IsEmpty());
}

TEST(ParseFaultPlan, NamesTheLineOrEntryThatItCannotRead) {
  EXPECT_THAT(plan_complaint("rank=0,step=5,fault=kill\n# x\nrank=9,step=5,fault=kill\n"),
              StartsWith("line 3 of the plan of faults: the fault \"rank=9"));
  EXPECT_THAT(plan_complaint(R"(["rank=0,step=5,fault=kill", "nonsense"])"), StartsWith("entry 2 of the plan"));
  EXPECT_THAT(plan_complaint("[null]"), HasSubstr("entry 1 of the plan of faults is neither"));
  EXPECT_THAT(plan_complaint("[[]]"), HasSubstr("entry 1 of the plan of faults is neither"));
  EXPECT_THAT(plan_complaint(R"([{"rank": [1]}])"), HasSubstr("entry 1 of the plan of faults is neither"));
  EXPECT_THAT(plan_complaint("[5]"), HasSubstr("entry 1 of the plan of faults is neither"));
  EXPECT_THAT(plan_complaint("[ \"rank=0\""), HasSubstr("not a JSON list"));
}

}  // namespace
}  // namespace holdfast::recovery
