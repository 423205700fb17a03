// How a project that uses Holdfast can test that its own training survives failures.

#include <gtest/gtest.h>

#include "holdfast/testing/expect_survives.h"
#include "holdfast/testing/fault_matrix.h"

namespace {

using holdfast::recovery::FaultKind;
using holdfast::recovery::FaultPhase;
using holdfast::resilience::expect_survives;

// TRAIN_PROGRAM is the path of the training program; CMakeLists.txt defines it.
const holdfast::resilience::Program kTraining{.command = {TRAIN_PROGRAM, "{run_dir}"}};

}  // namespace

TEST(Training, SurvivesTheDeathOfAReplica) {
  expect_survives(kTraining, {"rank=1,step=40,fault=kill"});
}

TEST(Training, SurvivesTwoFailuresAtOnce) {
  expect_survives(kTraining, {"rank=0,step=40,fault=kill", "rank=1,step=40,fault=throw"});
}

TEST(Training, SurvivesTheDeathOfTheWriterAtEachMomentOfASavepoint) {
  const auto cells = holdfast::resilience::fault_matrix(
      {.kinds = {FaultKind::kill},
       .phases = {FaultPhase::writing, FaultPhase::before_rename, FaultPhase::after_rename, FaultPhase::pruning},
       .replicas = {2},
       .savepoint_step = 80});
  for (const auto& cell : cells) {
    SCOPED_TRACE(cell.name);
    expect_survives(kTraining, cell.faults);
  }
}
