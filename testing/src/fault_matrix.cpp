#include "holdfast/testing/fault_matrix.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

// What the kind takes, so that it ends: a slow replica and a full disk get well again.
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

// What has to happen before training gets to the phase.
std::vector<std::string> beginning_of(const Fault& fault, int replicas, std::int64_t step) {
  std::vector<std::string> deaths;
  if (fault.phase == FaultPhase::load) {
    for (int rank = 0; rank < replicas; ++rank) deaths.push_back(death(rank, step));
  }
  if (fault.phase == FaultPhase::rendezvous || fault.phase == FaultPhase::broadcast) {
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
  return name_of(fault)
      .append("-")
      .append(recovery::to_string(fault.phase))
      .append("-")
      .append(name_of(rank))
      .append("-")
      .append(std::to_string(replicas));
}

// Of each kind, and of each target where it takes one: without a place yet.
std::vector<Fault> faults_of(const FaultMatrix& matrix) {
  std::vector<Fault> faults;
  for (const FaultKind kind : wanted_or_all(matrix.kinds, recovery::fault_kinds())) {
    for (const CorruptionTarget target : recovery::corruption_targets()) {
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
      // Both need somebody who survives another's death.
      if (replicas == 1 && (phase == FaultPhase::rendezvous || phase == FaultPhase::broadcast)) continue;
      fault.rank = rank == MatrixRank::first ? 0 : replicas - 1;
      fault.phase = phase;
      if (recovery::must_have_step(phase)) fault.step = step_in(phase, matrix_);
      // Another generation gets to the rendezvous of the first one's end only.
      if (phase == FaultPhase::rendezvous) fault.generation = 0;
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

// The second of two faults, when it strikes.
struct Moment {
  std::string_view name;
  FaultPhase phase;
  std::optional<int> generation;  // empty: that of the first fault
  bool is_of_survivors;           // nobody else gets there
};

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
    bool is_same = false;  // the second fault strikes the one in the dead one's place
    int replicas = 1;

    int first() const { return dead == MatrixRank::first ? 0 : replicas - 1; }
    int second() const { return is_same ? first() : replicas - 1 - first(); }
  };

  void add(int replicas, const Moment& moment, const Fault& fault) {
    for (const MatrixRank dead : matrix_.ranks) {
      if (dead == MatrixRank::last && replicas == 1) continue;
      const bool is_of_newcomers = moment.phase == FaultPhase::start;
      if (!moment.is_of_survivors) add({.dead = dead, .is_same = true, .replicas = replicas}, moment, fault);
      if (!is_of_newcomers && replicas > 1) add({.dead = dead, .replicas = replicas}, moment, fault);
    }
  }

  void add(const Ranks& ranks, const Moment& moment, Fault second) {
    Fault first{.rank = ranks.first(), .step = matrix_.step, .kind = FaultKind::kill};
    if (moment.phase == FaultPhase::start) {
      // Only behind a death there is it known which process is the second one.
      first.phase = FaultPhase::start;
      first.step.reset();
    }
    second.rank = ranks.second();
    second.phase = moment.phase;
    second.generation = moment.generation;
    if (recovery::must_have_step(moment.phase)) second.step = matrix_.step;
    if (!recovery::objection_to(second).empty()) return;
    std::string name = "kill-";
    name.append(name_of(ranks.dead)).append("-then-").append(name_of(second)).append("-").append(moment.name);
    name.append(ranks.is_same ? "-same-" : "-other-").append(std::to_string(ranks.replicas));
    cases_.push_back({.name = name, .faults = {to_string(first), to_string(second)}, .replicas = ranks.replicas});
  }

  const FaultMatrix& matrix_;
  std::vector<Case> cases_;
};

void require_sense(const FaultMatrix& matrix) {
  const bool has_replicas = std::all_of(matrix.replicas.begin(), matrix.replicas.end(), [](int n) { return n >= 1; });
  if (!has_replicas || matrix.step < 0 || matrix.savepoint_step < 0 || matrix.snapshot_step < 0) {
    throw Error(ErrorCode::invalid_argument,
                "a matrix of faults needs at least one replica in each column, and steps from 0 on");
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
  while (cases.size() > count) cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(draws.below(cases.size())));
  return cases;
}

}  // namespace holdfast::resilience
