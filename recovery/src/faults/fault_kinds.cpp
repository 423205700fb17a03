// Everything that is known about kinds, phases and targets is in three tables, so that a new kind is an enumerator and
// a row. Parser, random plans and strikes read them. docs/decisions/testing.md

#include "faults/fault_kinds.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "faults/fault_strikes.h"
#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

// Columns: name, other name, how it acts, keys that it takes, what it does, and values of keys that are not given.
constexpr std::array<FaultKindRow, 23> kFaultKinds{{
    {FaultKind::kill, "kill", "", FaultMeans::process, kNoKeys, strike::kill},
    {FaultKind::stop, "stop", "", FaultMeans::process, kNoKeys, strike::stop},
    {FaultKind::pause, "pause", "", FaultMeans::process, kDuration, strike::pause, {.duration = 500ms}},
    {FaultKind::segfault, "segfault", "", FaultMeans::process, kNoKeys, strike::segfault},
    {FaultKind::exit0, "exit0", "", FaultMeans::process, kNoKeys, strike::exit_with<0>},
    {FaultKind::exit1, "exit1", "", FaultMeans::process, kNoKeys, strike::exit_with<1>},
    {FaultKind::exit, "exit", "", FaultMeans::process, kNoKeys, strike::exit_with<3>},
    {FaultKind::throw_exception, "throw", "", FaultMeans::process, kNoKeys, strike::throw_exception},
    {FaultKind::terminate, "terminate", "", FaultMeans::process, kNoKeys, strike::terminate},
    {FaultKind::loop, "loop", "", FaultMeans::process, kNoKeys, strike::loop},
    {FaultKind::hang, "hang", "sleep", FaultMeans::process, kNoKeys, strike::hang},
    {FaultKind::slow, "slow", "", FaultMeans::pace, kFactor | kCount, nullptr, {.factor = 2}},
    {FaultKind::oom, "oom", "", FaultMeans::process, kNoKeys, strike::run_out_of_memory},
    {FaultKind::close_channel, "close-channel", "", FaultMeans::process, kNoKeys, strike::close_channel},
    {FaultKind::garbage, "garbage", "", FaultMeans::process, kSeed, strike::send_garbage},
    {FaultKind::nan, "nan", "", FaultMeans::state, kTarget | kSeed, nullptr, {.target = CorruptionTarget::loss}},
    {FaultKind::flip, "flip", "", FaultMeans::state, kTarget | kSeed, nullptr},
    {FaultKind::lose_beats, "lose-beats", "", FaultMeans::process, kNoKeys, strike::lose_beats},
    {FaultKind::delay_beats, "delay-beats", "", FaultMeans::process, kDuration, strike::delay_beats, {.duration = 2s}},
    {FaultKind::full_disk, "full-disk", "", FaultMeans::files, kCount, nullptr},
    {FaultKind::io_error, "io-error", "", FaultMeans::files, kCount, nullptr},
    {FaultKind::damage, "damage", "", FaultMeans::process, kSeed, strike::damage_savepoint},
    {FaultKind::kill_watchdog, "kill-watchdog", "", FaultMeans::process, kNoKeys, strike::kill_watchdog},
}};

// Columns: name, other name, whether a step is given, and whether only rank 0 gets there.
constexpr std::array<FaultPhaseRow, 17> kPhases{{
    {FaultPhase::start, "start", "", StepUse::none, false},
    {FaultPhase::load, "load", "", StepUse::possible, true},
    {FaultPhase::data, "data", "", StepUse::needed, false},
    {FaultPhase::forward, "forward", "compute", StepUse::needed, false},
    {FaultPhase::backward, "backward", "", StepUse::needed, false},
    {FaultPhase::reduce, "reduce", "", StepUse::needed, false},
    {FaultPhase::before_update, "before-update", "update", StepUse::needed, false},
    {FaultPhase::after_update, "after-update", "", StepUse::needed, false},
    {FaultPhase::callback, "callback", "", StepUse::needed, false},
    {FaultPhase::snapshot, "snapshot", "", StepUse::needed, true},
    {FaultPhase::writing, "writing", "", StepUse::needed, true},
    {FaultPhase::before_rename, "before-rename", "save", StepUse::needed, true},
    {FaultPhase::after_rename, "after-rename", "", StepUse::needed, true},
    {FaultPhase::pruning, "pruning", "", StepUse::needed, true},
    {FaultPhase::rendezvous, "rendezvous", "", StepUse::none, false},
    {FaultPhase::broadcast, "broadcast", "", StepUse::none, false},
    {FaultPhase::shutdown, "shutdown", "", StepUse::none, false},
}};

// Columns: name and other name. An empty other name is never accepted.
constexpr std::array<CorruptionTargetRow, 4> kTargets{{
    {CorruptionTarget::loss, "loss", ""},
    {CorruptionTarget::gradient, "gradient", ""},
    {CorruptionTarget::weight, "weight", ""},
    {CorruptionTarget::slot, "slot", ""},
}};

// The public lists are computed from the tables, so that none can miss a row.
template <typename Rows>
constexpr auto values_of(const Rows& rows) {
  std::array<decltype(rows[0].value), std::tuple_size_v<Rows>> values{};
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = rows[i].value;
  return values;
}

// In the order of the tables. Random plans draw by it, too: a row in between changes what a seed gives.
constexpr auto kAllKinds = values_of(kFaultKinds);
constexpr auto kAllPhases = values_of(kPhases);
constexpr auto kAllTargets = values_of(kTargets);

template <typename Rows, typename Value>
const auto& find_row(const Rows& rows, Value value) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.value == value; });
  // An enumerator without a row is a mistake of this file.
  HOLDFAST_ASSERT(found != rows.end());
  return *found;
}

// The phases in which a target can be changed: while it exists, and while nothing else uses it.
std::span<const FaultPhase> phases_of(CorruptionTarget target) {
  // The loss exists only between the forward pass and the sum over ranks. A gradient is wrong for one rank alone in
  // `backward`, and for the sum that this rank applies in `before-update`.
  static constexpr std::array kLoss{FaultPhase::backward};
  static constexpr std::array kGradient{FaultPhase::backward, FaultPhase::before_update};
  static constexpr std::array kState{FaultPhase::data,         FaultPhase::forward,  FaultPhase::before_update,
                                     FaultPhase::after_update, FaultPhase::callback, FaultPhase::snapshot};
  if (target == CorruptionTarget::loss) return kLoss;
  if (target == CorruptionTarget::gradient) return kGradient;
  return kState;
}

// A process can do something to itself at any time. The other means need the thing that they change.
std::span<const FaultPhase> phases_of(const Fault& fault) {
  // The factor is asked for once a step and holds for all of its computation. So no other phase would make a
  // difference.
  static constexpr std::array kPace{FaultPhase::forward};
  static constexpr std::array kFiles{FaultPhase::writing, FaultPhase::before_rename, FaultPhase::after_rename,
                                     FaultPhase::pruning};
  switch (row_of(fault.kind).means) {
    case FaultMeans::process:
      return kAllPhases;
    case FaultMeans::state:
      return phases_of(fault.target);
    case FaultMeans::pace:
      return kPace;
    case FaultMeans::files:
      return kFiles;
  }
  HOLDFAST_ASSERT(false);
}

// A fault of a process strikes in each phase, so no objection needs a reason.
std::string reason_of(const Fault& fault) {
  switch (row_of(fault.kind).means) {
    case FaultMeans::state:
      return fmt::format("a {} can be changed only while it exists and nothing else uses it", to_string(fault.target));
    case FaultMeans::pace:
      return "it lasts whole steps";
    case FaultMeans::files:
      return "it fails operations on the files of savepoints";
    case FaultMeans::process:
      break;
  }
  HOLDFAST_ASSERT(false);
}

std::string list(std::span<const FaultPhase> phases) {
  std::string text;
  for (const FaultPhase phase : phases) text += (text.empty() ? "" : ", ") + std::string(to_string(phase));
  return text;
}

}  // namespace

std::span<const FaultKindRow> fault_kind_rows() {
  return kFaultKinds;
}
std::span<const FaultPhaseRow> fault_phase_rows() {
  return kPhases;
}
std::span<const CorruptionTargetRow> corruption_target_rows() {
  return kTargets;
}

std::span<const FaultKind> fault_kinds() {
  return kAllKinds;
}
std::span<const FaultPhase> fault_phases() {
  return kAllPhases;
}
std::span<const CorruptionTarget> corruption_targets() {
  return kAllTargets;
}

const FaultKindRow& row_of(FaultKind kind) {
  return find_row(kFaultKinds, kind);
}
const FaultPhaseRow& row_of(FaultPhase phase) {
  return find_row(kPhases, phase);
}

std::string_view to_string(FaultKind kind) {
  return row_of(kind).name;
}
std::string_view to_string(FaultPhase phase) {
  return row_of(phase).name;
}
std::string_view to_string(CorruptionTarget target) {
  return find_row(kTargets, target).name;
}

bool takes_target(FaultKind kind) {
  return (row_of(kind).keys & kTarget) != 0;
}
bool may_have_step(FaultPhase phase) {
  return row_of(phase).step != StepUse::none;
}
bool must_have_step(FaultPhase phase) {
  return row_of(phase).step == StepUse::needed;
}
bool is_of_rank_zero(FaultPhase phase) {
  return row_of(phase).is_of_rank_zero;
}

bool is_of_savepoint(FaultPhase phase) {
  // Every kind that acts by files has the same phases, so any of them serves.
  const std::span<const FaultPhase> phases = phases_of(Fault{.kind = FaultKind::full_disk});
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

FaultPhase default_phase(const Fault& fault) {
  const FaultMeans means = row_of(fault.kind).means;
  // Each step of each rank gets there.
  if (means == FaultMeans::process) return FaultPhase::forward;
  // Both remaining means have tables whose first phase is the earliest at which they have an effect.
  if (means != FaultMeans::state) return phases_of(fault).front();
  const bool is_state = fault.target == CorruptionTarget::weight || fault.target == CorruptionTarget::slot;
  return is_state ? FaultPhase::after_update : FaultPhase::backward;
}

// Asked in the order in which a user corrects them. The phase comes last, because the list of phases is long.
std::string objection_to(const Fault& fault) {
  const std::string phase(to_string(fault.phase));
  if (must_have_step(fault.phase) && !fault.step) return fmt::format("lacks step=, which phase={} requires", phase);
  if (!may_have_step(fault.phase) && fault.step) {
    return fmt::format("gives a step, but phase={} belongs to no step; leave step= out", phase);
  }
  // Such a fault would never strike, and a run that does not meet its fault shows nothing.
  if (is_of_rank_zero(fault.phase) && fault.rank != 0) {
    return fmt::format("is for rank {}, but only rank 0 reaches phase={}", fault.rank, phase);
  }
  if (fault.phase == FaultPhase::start && fault.generation) {
    return "gives a generation, but a process in phase=start is part of no generation; leave generation= out";
  }
  const std::span<const FaultPhase> phases = phases_of(fault);
  if (std::find(phases.begin(), phases.end(), fault.phase) != phases.end()) return "";
  return fmt::format("cannot strike in phase={}: {}; use one of the phases {}", phase, reason_of(fault), list(phases));
}

}  // namespace holdfast::recovery
