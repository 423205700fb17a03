// A random plan is useful only if its faults strike, so a draw that another fault could prevent is drawn again. All
// draws are functions of the seed (Philox). docs/decisions/testing.md

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "faults/fault_kinds.h"
#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/fault_plan.h"

namespace holdfast::recovery {
namespace {

// Far more than any run survives. The limit keeps a mistyped number from taking all memory.
constexpr int kMostFaults = 1'000'000;

// A kind with the phases and targets that it can have: faults without rank and step.
struct Choice {
  FaultKind kind;
  std::vector<Fault> forms;
};

template <typename Value>
bool is_wanted(const std::vector<Value>& wanted, Value value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// A start may take minutes (RecoveryOptions::start_timeout), and a process that computes has ten times the limit of
// its phase (HangDetector). Both are longer than a run of random faults should take.
bool is_noticed_late(const Fault& fault) {
  if (fault.kind != FaultKind::hang && fault.kind != FaultKind::loop) return false;
  if (fault.phase == FaultPhase::start) return true;
  return fault.kind == FaultKind::loop && (fault.phase == FaultPhase::data || fault.phase == FaultPhase::shutdown);
}

std::vector<Fault> forms_of(const FaultKindRow& row, const RandomFaultPlan& plan) {
  std::vector<Fault> forms;
  for (const CorruptionTarget target : corruption_targets()) {
    // A kind without a target has one form for each phase, not one for each target.
    if (!takes_target(row.value) && target != row.defaults.target) continue;
    for (const FaultPhase phase : fault_phases()) {
      Fault form{.phase = phase, .kind = row.value, .duration = row.defaults.duration};
      form.factor = row.defaults.factor;
      form.target = target;
      if (must_have_step(phase)) form.step = 0;
      if (!is_wanted(plan.phases, phase) || !objection_to(form).empty()) continue;
      if (plan.runs != RunsToStrike::unknown && is_noticed_late(form)) continue;
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

std::vector<Choice> choices_of(const RandomFaultPlan& plan) {
  std::vector<Choice> choices;
  for (const FaultKindRow& row : fault_kind_rows()) {
    // Without a watchdog the run ends, and has to be started again by its user. So this kind must be asked for.
    if (plan.kinds.empty() ? row.value == FaultKind::kill_watchdog : !is_wanted(plan.kinds, row.value)) continue;
    std::vector<Fault> forms = forms_of(row, plan);
    if (!forms.empty()) choices.push_back({row.value, std::move(forms)});
  }
  return choices;
}

void require(std::int64_t value, std::int64_t lowest, std::int64_t highest, const char* what) {
  if (value >= lowest && value <= highest) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a random plan of faults was asked for with {} {}; from {} to {} are allowed", value, what,
                          lowest, highest));
}

template <typename Value>
const Value& draw(Draws& draws, const std::vector<Value>& values) {
  return values[draws.below(values.size())];
}

std::int64_t draw_step(const RandomFaultPlan& plan, FaultPhase phase, Draws& draws) {
  if (is_of_savepoint(phase) && !plan.savepoint_steps.empty()) return draw(draws, plan.savepoint_steps);
  return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(plan.steps)));
}

// Each fault has its own draws, so that fault n is the same in a longer plan.
Fault draw_fault(const RandomFaultPlan& plan, const std::vector<Choice>& choices, Draws draws) {
  Fault fault = draw(draws, draw(draws, choices).forms);
  fault.rank = static_cast<int>(draws.below(static_cast<std::uint64_t>(plan.replicas)));
  if (is_of_rank_zero(fault.phase)) fault.rank = 0;
  if (fault.step) fault.step = draw_step(plan, fault.phase, draws);
  // All processes pass it after every generation, and each generation may be ended by one fault.
  if (fault.phase == FaultPhase::rendezvous) {
    fault.generation = static_cast<int>(draws.below(static_cast<std::uint64_t>(plan.faults)));
  }
  const FaultKeys keys = row_of(fault.kind).keys;
  if ((keys & kDuration) != 0) fault.duration = std::chrono::milliseconds(50 + draws.below(2950));
  if ((keys & kFactor) != 0) fault.factor = static_cast<double>(2 + draws.below(3));
  if ((keys & kCount) != 0) fault.count = static_cast<std::int64_t>(1 + draws.below(20));
  // Shifted, because the parser takes seeds up to the largest signed number.
  if ((keys & kSeed) != 0) fault.seed = draws.next() >> 1;
  fault.specification = to_string(fault);
  return fault;
}

// Orders faults in a run. Faults at its start and at its end have no step.
std::int64_t place_in_run(const Fault& fault) {
  if (fault.phase == FaultPhase::shutdown) return std::numeric_limits<std::int64_t>::max();
  return fault.step.value_or(-1);
}

// A fault that may take its replica out of the run, for an unknown time. A pause may be taken for a hang.
bool may_lose_replica(const Fault& fault) {
  return fault.kind != FaultKind::slow && row_of(fault.kind).means != FaultMeans::files;
}

// The faults of one run, each of which strikes whatever the others do. Only faults that certainly strike are taken,
// so one that is refused might strike, too.
class OneRun {
 public:
  explicit OneRun(const RandomFaultPlan& plan) : plan_(&plan), savepoints_(plan.savepoint_steps) {
    std::sort(savepoints_.begin(), savepoints_.end());
  }

  bool add(const Fault& fault) {
    if (!has_what_it_needs(fault)) return false;
    const auto is_at_its_place = [&](const Fault& other) { return place_in_run(other) == place_in_run(fault); };
    // A step that fails a third time ends the run.
    constexpr int kMostAtOnePlace = 2;
    if (std::count_if(faults_.begin(), faults_.end(), is_at_its_place) >= kMostAtOnePlace) return false;
    for (const Fault& other : faults_) {
      if (is_kept_from_striking(fault, other) || is_kept_from_striking(other, fault)) return false;
    }
    // Ranks depend on the order of all faults, so the fault is added to find out.
    faults_.push_back(fault);
    if (are_ranks_there()) return true;
    faults_.pop_back();
    return false;
  }

  std::vector<Fault> take() { return std::move(faults_); }

 private:
  bool has_what_it_needs(const Fault& fault) const {
    if (is_of_savepoint(fault.phase) &&
        std::find(savepoints_.begin(), savepoints_.end(), fault.step) == savepoints_.end()) {
      return false;
    }
    if (fault.kind != FaultKind::damage) return true;
    // A savepoint is written while the next steps run. It certainly has its name after its rename, and when the next
    // one is written.
    if (fault.phase == FaultPhase::after_rename) return true;
    return savepoints_.size() > 1 && place_in_run(fault) >= savepoints_[1] + (is_of_savepoint(fault.phase) ? 0 : 1);
  }

  // Whether `other` may prevent `fault`.
  bool is_kept_from_striking(const Fault& fault, const Fault& other) const {
    // Each process has one start and one end. A run whose last savepoint fails does not reach its end.
    if (fault.phase == FaultPhase::shutdown) {
      return other.phase == FaultPhase::shutdown || row_of(other.kind).means == FaultMeans::files;
    }
    if (fault.phase == FaultPhase::start) return other.phase == FaultPhase::start && other.rank == fault.rank;
    if (!is_of_savepoint(fault.phase)) return false;
    // Files may fail for later savepoints, too. A writer that hangs or dies may leave out the next ones, because
    // training does not wait for it.
    if (is_of_savepoint(other.phase)) return true;
    // A savepoint is lost when its writer dies while it writes, and training may go on without it.
    const auto next = std::upper_bound(savepoints_.begin(), savepoints_.end(), *fault.step);
    const std::int64_t end = next == savepoints_.end() ? std::numeric_limits<std::int64_t>::max() - 1 : *next - 1;
    return place_in_run(other) >= *fault.step - 1 && place_in_run(other) <= end;
  }

  bool are_ranks_there() const {
    std::vector<const Fault*> ordered;
    for (const Fault& fault : faults_) ordered.push_back(&fault);
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Fault* a, const Fault* b) { return place_in_run(*a) < place_in_run(*b); });
    int there = plan_->replicas;
    for (const Fault* fault : ordered) {
      // All processes start with the ranks that they have, also after others were lost.
      if (fault->phase != FaultPhase::start && fault->rank >= there) return false;
      // The lowest possible count: a new process may have come back by then, but need not have.
      if (may_lose_replica(*fault)) there = std::max(1, there - 1);
    }
    return true;
  }

  const RandomFaultPlan* plan_;
  std::vector<std::int64_t> savepoints_;  // rising
  std::vector<Fault> faults_;
};

// Draws each fault again until it fits, with so many tries that the free positions are found.
std::vector<Fault> draw_what_strikes(const RandomFaultPlan& plan, const std::vector<Choice>& choices, Draws seeds) {
  constexpr int kTries = 1000;
  std::vector<Fault> faults;
  OneRun run(plan);
  for (int i = 0; i < plan.faults; ++i) {
    // One draw of the plan for each fault, however many tries it takes, so that later faults do not depend on it.
    Draws of_fault(seeds.next());
    int tries = 0;
    while (!run.add(draw_fault(plan, choices, Draws(of_fault.next())))) {
      if (++tries < kTries) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a run of {} steps and {} savepoints has no room for more than {} faults that certainly "
                              "strike, and {} were asked for; ask for fewer, or for a run for each (--each)",
                              plan.steps, plan.savepoint_steps.size(), i, plan.faults));
    }
    if (plan.runs == RunsToStrike::one && i + 1 < plan.faults) continue;
    const std::vector<Fault> of_run = std::exchange(run, OneRun(plan)).take();
    faults.insert(faults.end(), of_run.begin(), of_run.end());
  }
  return faults;
}

}  // namespace

std::vector<Fault> random_fault_plan(const RandomFaultPlan& plan) {
  require(plan.faults, 0, kMostFaults, "faults");
  require(plan.replicas, 1, kMostFaults, "replicas");
  require(plan.steps, 1, std::numeric_limits<std::int64_t>::max(), "steps");
  const std::vector<Choice> choices = choices_of(plan);
  if (choices.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "a random plan of faults was asked for, but none of its kinds can strike in any of its phases; allow "
                "more kinds or phases, see docs/faults.md#faults");
  }
  Draws seeds(plan.seed);
  std::vector<Fault> faults;
  if (plan.runs != RunsToStrike::unknown) {
    faults = draw_what_strikes(plan, choices, seeds);
  } else {
    for (int i = 0; i < plan.faults; ++i) faults.push_back(draw_fault(plan, choices, Draws(seeds.next())));
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.step.value_or(-1) < b.step.value_or(-1); });
  return faults;
}

}  // namespace holdfast::recovery
