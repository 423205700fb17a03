#include "holdfast/testing/fault_matrix.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
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

std::string name_of(const Fault& fault, MatrixRank rank, int replicas) {
  std::string name(to_string(fault.kind));
  if (recovery::takes_target(fault.kind)) name.append("-").append(to_string(fault.target));
  name.append("-").append(to_string(fault.phase));
  name += rank == MatrixRank::first ? "-first-" : "-last-";
  return name + std::to_string(replicas);
}

class Cells {
 public:
  explicit Cells(const FaultMatrix& matrix) : matrix_(matrix) {}

  std::vector<Case> all() {
    for (const int replicas : matrix_.replicas) {
      for (const FaultPhase phase : wanted_or_all(matrix_.phases, recovery::fault_phases())) {
        for (const FaultKind kind : wanted_or_all(matrix_.kinds, recovery::fault_kinds())) {
          for (const CorruptionTarget target : recovery::corruption_targets()) add(replicas, phase, kind, target);
        }
      }
    }
    return std::move(cases_);
  }

 private:
  void add(int replicas, FaultPhase phase, FaultKind kind, CorruptionTarget target) {
    if (!recovery::takes_target(kind) && target != Fault{}.target) return;
    for (const MatrixRank rank : matrix_.ranks) {
      // With one replica the first is the last.
      if (rank == MatrixRank::last && (replicas == 1 || recovery::is_of_rank_zero(phase))) continue;
      // Both need somebody who survives another's death.
      if (replicas == 1 && (phase == FaultPhase::rendezvous || phase == FaultPhase::broadcast)) continue;
      Fault fault{.rank = rank == MatrixRank::first ? 0 : replicas - 1, .phase = phase, .kind = kind, .target = target};
      if (recovery::must_have_step(phase)) fault.step = step_in(phase, matrix_);
      // Another generation gets to the rendezvous of the first one's end only.
      if (phase == FaultPhase::rendezvous) fault.generation = 0;
      set_parameters(fault);
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

}  // namespace

std::vector<Case> fault_matrix(const FaultMatrix& matrix) {
  const bool has_replicas = std::all_of(matrix.replicas.begin(), matrix.replicas.end(), [](int n) { return n >= 1; });
  if (!has_replicas || matrix.step < 0 || matrix.savepoint_step < 0 || matrix.snapshot_step < 0) {
    throw Error(ErrorCode::invalid_argument,
                "a matrix of faults needs at least one replica in each column, and steps from 0 on");
  }
  return Cells(matrix).all();
}

std::vector<Case> sample_of(std::vector<Case> cases, std::size_t count, std::uint64_t seed) {
  Draws draws(seed);
  while (cases.size() > count) cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(draws.below(cases.size())));
  return cases;
}

}  // namespace holdfast::resilience
