#include <algorithm>
#include <limits>
#include <utility>

#include "fault_kinds.h"
#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/fault_plan.h"

namespace holdfast::recovery {
namespace {

// Far above what any run survives; it keeps a mistyped number from taking all memory.
constexpr int kMostFaults = 1'000'000;

// A kind with the phases and targets that it can have: faults but for their place.
struct Choice {
  FaultKind kind;
  std::vector<Fault> forms;
};

template <typename Value>
bool is_wanted(const std::vector<Value>& wanted, Value value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

std::vector<Fault> forms_of(const FaultKindRow& row, const std::vector<FaultPhase>& phases) {
  std::vector<Fault> forms;
  for (const CorruptionTarget target : corruption_targets()) {
    if (!takes_target(row.value) && target != row.defaults.target) continue;
    for (const FaultPhase phase : fault_phases()) {
      Fault form{.phase = phase, .kind = row.value, .duration = row.defaults.duration};
      form.factor = row.defaults.factor;
      form.target = target;
      if (must_have_step(phase)) form.step = 0;
      if (is_wanted(phases, phase) && objection_to(form).empty()) forms.push_back(std::move(form));
    }
  }
  return forms;
}

std::vector<Choice> choices_of(const RandomFaultPlan& plan) {
  std::vector<Choice> choices;
  for (const FaultKindRow& row : fault_kind_rows()) {
    if (plan.kinds.empty() ? row.value == FaultKind::kill_watchdog : !is_wanted(plan.kinds, row.value)) continue;
    std::vector<Fault> forms = forms_of(row, plan.phases);
    if (!forms.empty()) choices.push_back({row.value, std::move(forms)});
  }
  return choices;
}

void require(std::int64_t value, std::int64_t lowest, std::int64_t highest, const char* what) {
  if (value >= lowest && value <= highest) return;
  throw Error(ErrorCode::invalid_argument, "a random plan of faults was asked for with " + std::to_string(value) + " " +
                                               what + "; from " + std::to_string(lowest) + " to " +
                                               std::to_string(highest) + " are allowed");
}

template <typename Value>
const Value& draw(Draws& draws, const std::vector<Value>& values) {
  return values[draws.below(values.size())];
}

std::int64_t draw_step(const RandomFaultPlan& plan, FaultPhase phase, Draws& draws) {
  if (is_of_savepoint(phase) && !plan.savepoint_steps.empty()) return draw(draws, plan.savepoint_steps);
  return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(plan.steps)));
}

// Each fault has its own draws, so that the n-th of a longer plan is the n-th of a shorter one.
Fault draw_fault(const RandomFaultPlan& plan, const std::vector<Choice>& choices, Draws draws) {
  Fault fault = draw(draws, draw(draws, choices).forms);
  fault.rank = static_cast<int>(draws.below(static_cast<std::uint64_t>(plan.replicas)));
  if (is_of_rank_zero(fault.phase)) fault.rank = 0;
  if (fault.step) fault.step = draw_step(plan, fault.phase, draws);
  // All go through it after every generation; each generation may be ended by one fault.
  if (fault.phase == FaultPhase::rendezvous) {
    fault.generation = static_cast<int>(draws.below(static_cast<std::uint64_t>(plan.faults)));
  }
  const FaultKeys keys = row_of(fault.kind).keys;
  if ((keys & kDuration) != 0) fault.duration = std::chrono::milliseconds(50 + draws.below(2950));
  if ((keys & kFactor) != 0) fault.factor = static_cast<double>(2 + draws.below(3));
  if ((keys & kCount) != 0) fault.count = static_cast<std::int64_t>(1 + draws.below(20));
  if ((keys & kSeed) != 0) fault.seed = draws.next() >> 1;
  fault.specification = to_string(fault);
  return fault;
}

}  // namespace

std::vector<Fault> random_fault_plan(const RandomFaultPlan& plan) {
  require(plan.faults, 0, kMostFaults, "faults");
  require(plan.replicas, 1, kMostFaults, "replicas");
  require(plan.steps, 1, std::numeric_limits<std::int64_t>::max(), "steps");
  const std::vector<Choice> choices = choices_of(plan);
  if (choices.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "a random plan of faults was asked for of kinds that make no sense in any of the phases asked for; "
                "leave kinds or phases out, or see which go together in docs/recovery.md#making-faults");
  }
  Draws seeds(plan.seed);
  std::vector<Fault> faults;
  for (int i = 0; i < plan.faults; ++i) faults.push_back(draw_fault(plan, choices, Draws(seeds.next())));
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.step.value_or(-1) < b.step.value_or(-1); });
  return faults;
}

}  // namespace holdfast::recovery
