// Combines kinds, phases and ranks into cases. recovery::objection_to() knows which faults make sense, so a new kind of
// fault appears in the matrix without a change here. See docs/decisions/testing.md.

#include "holdfast/testing/fault_matrix.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/draws.h"
#include "holdfast/base/error.h"

namespace holdfast::resilience {
namespace {

using recovery::CorruptionTarget;
using recovery::Fault;
using recovery::FaultKind;
using recovery::FaultPhase;

template <typename Value>
std::vector<Value> wanted_or_all(const std::vector<Value>& wanted, std::span<const Value> all) {
  return wanted.empty() ? std::vector<Value>(all.begin(), all.end()) : wanted;
}

std::int64_t step_in(FaultPhase phase, const FaultMatrix& matrix) {
  // A snapshot or savepoint is not made after every step, and a fault in its phases strikes only where one is.
  switch (phase) {
    case FaultPhase::snapshot:
      return matrix.snapshot_step;
    case FaultPhase::writing:
    case FaultPhase::before_rename:
    case FaultPhase::after_rename:
    case FaultPhase::pruning:
      return matrix.savepoint_step;
    default:
      return matrix.step;
  }
}

// Sets parameters with which the fault ends: a slow replica becomes quick again, and a full disk has room again.
void set_parameters(Fault& fault) {
  if (fault.kind == FaultKind::pause) fault.duration = std::chrono::milliseconds(500);
  if (fault.kind == FaultKind::delay_beats) fault.duration = std::chrono::milliseconds(2000);
  if (fault.kind == FaultKind::slow) {
    fault.factor = 2;
    fault.count = 5;
  }
  if (fault.kind == FaultKind::full_disk || fault.kind == FaultKind::io_error) fault.count = 1;
}

std::string death(int rank, std::int64_t step) {
  return to_string(Fault{.rank = rank, .step = step, .kind = FaultKind::kill});
}

// The deaths that make training reach the phase.
std::vector<std::string> beginning_of(const Fault& fault, int replicas, std::int64_t step) {
  std::vector<std::string> deaths;
  if (fault.phase == FaultPhase::load) {
    // A state is loaded only when no replica is left that has one.
    for (int rank = 0; rank < replicas; ++rank) deaths.push_back(death(rank, step));
  }
  if (fault.phase == FaultPhase::rendezvous || fault.phase == FaultPhase::broadcast) {
    // Another rank than the fault's, which must survive to reach the phase.
    deaths.push_back(death(fault.rank == 0 ? replicas - 1 : 0, step));
  }
  return deaths;
}

std::string name_of(const Fault& fault) {
  std::string name(to_string(fault.kind));
  if (recovery::takes_target(fault.kind)) name.append("-").append(recovery::to_string(fault.target));
  return name;
}

std::string_view name_of(MatrixRank rank) {
  return rank == MatrixRank::first ? "first" : "last";
}

std::string name_of(const Fault& fault, MatrixRank rank, int replicas) {
  return fmt::format("{}-{}-{}-{}", name_of(fault), recovery::to_string(fault.phase), name_of(rank), replicas);
}

// A fault of each kind, and of each target if the kind has targets. Rank, step and phase are not set yet.
std::vector<Fault> faults_of(const FaultMatrix& matrix) {
  std::vector<Fault> faults;
  for (const FaultKind kind : wanted_or_all(matrix.kinds, recovery::fault_kinds())) {
    for (const CorruptionTarget target : recovery::corruption_targets()) {
      // A kind without targets gets one fault, not the same one for each target.
      if (!recovery::takes_target(kind) && target != Fault{}.target) continue;
      faults.push_back({.kind = kind, .target = target});
      set_parameters(faults.back());
    }
  }
  return faults;
}

class Cells {
 public:
  explicit Cells(const FaultMatrix& matrix) : matrix_(matrix) {}

  std::vector<Case> all() {
    for (const int replicas : matrix_.replicas) {
      for (const FaultPhase phase : wanted_or_all(matrix_.phases, recovery::fault_phases())) {
        for (const Fault& fault : faults_of(matrix_)) add(replicas, phase, fault);
      }
    }
    return std::move(cases_);
  }

 private:
  void add(int replicas, FaultPhase phase, Fault fault) {
    for (const MatrixRank rank : matrix_.ranks) {
      // With one replica the first is the last.
      if (rank == MatrixRank::last && (replicas == 1 || recovery::is_of_rank_zero(phase))) continue;
      // Both phases need a replica that survives another one's death.
      if (replicas == 1 && (phase == FaultPhase::rendezvous || phase == FaultPhase::broadcast)) continue;
      fault.rank = rank == MatrixRank::first ? 0 : replicas - 1;
      fault.phase = phase;
      if (recovery::must_have_step(phase)) fault.step = step_in(phase, matrix_);
      // Replicas reach the rendezvous at the end of generation 0.
      if (phase == FaultPhase::rendezvous) fault.generation = 0;
      // A combination that makes no sense is not a cell. A list of these here would be a second copy of the rule.
      if (!recovery::objection_to(fault).empty()) continue;
      Case cell{.name = name_of(fault, rank, replicas), .replicas = replicas};
      cell.faults = beginning_of(fault, replicas, matrix_.step);
      cell.faults.push_back(to_string(fault));
      cases_.push_back(std::move(cell));
    }
  }

  const FaultMatrix& matrix_;
  std::vector<Case> cases_;
};

// When the second of two faults strikes.
struct Moment {
  std::string_view name;
  FaultPhase phase;
  std::optional<int> generation;  // empty: the generation of the first fault
  bool is_of_survivors;           // only survivors reach it
};

// Generation 0 ends by the first fault, and generation 1 recovers from it.
constexpr Moment kMoments[] = {
    {"at-once", FaultPhase::forward, std::nullopt, true},
    {"start", FaultPhase::start, std::nullopt, false},
    {"rendezvous", FaultPhase::rendezvous, 0, true},
    {"broadcast", FaultPhase::broadcast, 1, false},
    {"data", FaultPhase::data, 1, false},
    {"forward", FaultPhase::forward, 1, false},
    {"backward", FaultPhase::backward, 1, false},
    {"reduce", FaultPhase::reduce, 1, false},
    {"before-update", FaultPhase::before_update, 1, false},
    {"after-update", FaultPhase::after_update, 1, false},
    {"callback", FaultPhase::callback, 1, false},
};

class Pairs {
 public:
  explicit Pairs(const FaultMatrix& matrix) : matrix_(matrix) {}

  std::vector<Case> all() {
    const std::vector<FaultPhase> phases = wanted_or_all(matrix_.phases, recovery::fault_phases());
    for (const int replicas : matrix_.replicas) {
      for (const Moment& moment : kMoments) {
        if (std::find(phases.begin(), phases.end(), moment.phase) == phases.end()) continue;
        for (const Fault& fault : faults_of(matrix_)) add(replicas, moment, fault);
      }
    }
    return std::move(cases_);
  }

 private:
  struct Ranks {
    MatrixRank dead = MatrixRank::first;
    bool is_same = false;  // the second fault strikes the process that replaces the dead one
    int replicas = 1;

    int first() const { return dead == MatrixRank::first ? 0 : replicas - 1; }
    // The other end of the ranks: rank 0 has work that others do not have, such as savepoints.
    int second() const { return is_same ? first() : replicas - 1 - first(); }
  };

  void add(int replicas, const Moment& moment, const Fault& fault) {
    for (const MatrixRank dead : matrix_.ranks) {
      if (dead == MatrixRank::last && replicas == 1) continue;
      // Survivors do not start, so in this phase both faults are for processes of the same rank.
      const bool is_of_newcomers = moment.phase == FaultPhase::start;
      if (!moment.is_of_survivors) add({.dead = dead, .is_same = true, .replicas = replicas}, moment, fault);
      if (!is_of_newcomers && replicas > 1) add({.dead = dead, .replicas = replicas}, moment, fault);
    }
  }

  void add(const Ranks& ranks, const Moment& moment, Fault second) {
    Fault first{.rank = ranks.first(), .step = matrix_.step, .kind = FaultKind::kill};
    if (moment.phase == FaultPhase::start) {
      // Both deaths are at the start: only then is it known which process is the second one.
      first.phase = FaultPhase::start;
      first.step.reset();
    }
    // The phase decides whether there is such a rank then; objection_to() leaves out the rest.
    second.rank = ranks.second();
    second.phase = moment.phase;
    second.generation = moment.generation;
    if (recovery::must_have_step(moment.phase)) second.step = matrix_.step;
    if (!recovery::objection_to(second).empty()) return;
    std::string name = fmt::format("kill-{}-then-{}-{}-{}-{}", name_of(ranks.dead), name_of(second), moment.name,
                                   ranks.is_same ? "same" : "other", ranks.replicas);
    cases_.push_back(
        {.name = std::move(name), .faults = {to_string(first), to_string(second)}, .replicas = ranks.replicas});
  }

  const FaultMatrix& matrix_;
  std::vector<Case> cases_;
};

void require_sense(const FaultMatrix& matrix) {
  const bool has_replicas = std::all_of(matrix.replicas.begin(), matrix.replicas.end(), [](int n) { return n >= 1; });
  if (!has_replicas || matrix.step < 0 || matrix.savepoint_step < 0 || matrix.snapshot_step < 0) {
    throw Error(ErrorCode::invalid_argument,
                "cannot make a matrix of faults: each number of replicas must be at least 1, and each step at least 0");
  }
}

}  // namespace

std::vector<Case> fault_matrix(const FaultMatrix& matrix) {
  require_sense(matrix);
  return Cells(matrix).all();
}

std::vector<Case> fault_pairs(const FaultMatrix& matrix) {
  require_sense(matrix);
  return Pairs(matrix).all();
}

std::vector<Case> sample_of(std::vector<Case> cases, std::size_t count, std::uint64_t seed) {
  Draws draws(seed);
  // Erased and not drawn, so that the cases that are left keep their order.
  while (cases.size() > count) cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(draws.below(cases.size())));
  return cases;
}

}  // namespace holdfast::resilience
