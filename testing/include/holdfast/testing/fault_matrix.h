#pragma once

// The cases of a thorough test: every kind of fault in every phase of training, and pairs of faults. A test of a
// program goes through them with ResilienceTest::run().
//
//   ResilienceTest test({.command = {"./train", "--run-dir", "{run_dir}", "--replicas", "{replicas}"}});
//   const FaultMatrix kills{.kinds = {recovery::FaultKind::kill}, .replicas = {2}};
//   for (const Case& one : sample_of(fault_matrix(kills), 10, 1)) {
//     EXPECT_TRUE(has_survived(test.run(one).verdict)) << one.name;
//   }

#include <cstdint>
#include <vector>

#include "holdfast/recovery/fault_plan.h"
#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

// Which rank a fault strikes.
enum class MatrixRank {
  first,  // 0, which writes savepoints
  last,   // the highest one
};

// Which cases to make. The steps must be ones that the program reaches.
struct FaultMatrix {
  std::vector<recovery::FaultKind> kinds{};                            // empty: all
  std::vector<recovery::FaultPhase> phases{};                          // empty: all
  std::vector<MatrixRank> ranks{MatrixRank::first, MatrixRank::last};  // that faults strike
  std::vector<int> replicas{2, 4};                                     // numbers of replicas to run with
  std::int64_t step = 10;                                              // that training reaches, counted from 0
  // The number of updates after which a savepoint is written, with older ones to prune.
  std::int64_t savepoint_step = 12;
  std::int64_t snapshot_step = 10;  // the number of updates after which a memory snapshot is made
};

// All cases that make sense, ordered by replicas, phase, kind and rank, with names such as "kill-forward-last-2". `nan`
// and `flip` have a case for each target. A fault that strikes during a recovery comes with the death that begins the
// recovery: of another rank, or of all ranks when a state is to be loaded. A pure function. Throws
// Error{invalid_argument} when a number is out of range.
std::vector<Case> fault_matrix(const FaultMatrix& matrix);

// Cases with a death at `matrix.step`, and a second fault of every kind while the run recovers from it. The second
// fault strikes the rank that replaces the dead one, or a survivor. It strikes in the same step, on the way into the
// next generation, or in its first step. Names are such as "kill-last-then-stop-reduce-other-2". "at-once" means the
// same step; "start" means that the new process meets the fault before it is ready. Otherwise like fault_matrix().
std::vector<Case> fault_pairs(const FaultMatrix& matrix);

// Draws `count` of the cases, or returns all if there are not more. Equal seeds give equal cases, which keep their
// order. A long matrix is tested in parts this way, with another seed each time.
std::vector<Case> sample_of(std::vector<Case> cases, std::size_t count, std::uint64_t seed);

}  // namespace holdfast::resilience
