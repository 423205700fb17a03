#pragma once

// Every fault in every phase: the cases of a thorough test, as a table that a program's test goes through.

#include <cstdint>
#include <vector>

#include "holdfast/recovery/fault_plan.h"
#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

enum class MatrixRank { first, last };

struct FaultMatrix {
  std::vector<recovery::FaultKind> kinds{};    // empty: all
  std::vector<recovery::FaultPhase> phases{};  // empty: all
  std::vector<MatrixRank> ranks{MatrixRank::first, MatrixRank::last};
  std::vector<int> replicas{2, 4};
  // Where training gets to for certain: a step, counted from 0; and numbers of updates at which a savepoint is written,
  // with older ones to prune, and a memory snapshot is made.
  std::int64_t step = 10;
  std::int64_t savepoint_step = 12;
  std::int64_t snapshot_step = 10;
};

// Those that make sense, of nan and flip one for each target, by replicas, phase, kind and rank; names such as
// "kill-forward-last-2". What strikes during a recovery comes with the death that begins one: of another rank, or of
// all where a state is to be loaded. Pure. Throws Error{invalid_argument} where a number is out of range.
std::vector<Case> fault_matrix(const FaultMatrix& matrix);

// A death at `matrix.step`, and a second fault while the run recovers from it: of every kind, by the rank that takes
// the dead one's place or by one that survived, at the same step or on the way into the next generation and through its
// first step. Names such as "kill-last-then-stop-reduce-other-2"; "at-once" where both strike at the same step, and
// "start" where the new process meets the second before it is ready. Phases that are no such moment are left out.
// Otherwise as fault_matrix().
std::vector<Case> fault_pairs(const FaultMatrix& matrix);

// `count` of them, the same for a seed; all when there are no more. They keep their order.
std::vector<Case> sample_of(std::vector<Case> cases, std::size_t count, std::uint64_t seed);

}  // namespace holdfast::resilience
