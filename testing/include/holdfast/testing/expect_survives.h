#pragma once

// One call that tests whether a training program survives faults. For tests with GoogleTest, which this header needs
// and the library does not:
//
//   TEST(MyTraining, SurvivesTheDeathOfAReplica) {
//     holdfast::resilience::expect_survives({.command = {"./train", "--run-dir", "{run_dir}"}},
//                                           {"rank=1,step=120,fault=kill"});
//   }
//
// The weights at the end must be those of a run without faults, bit by bit. See resilience_test.h for exceptions.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

// The ResilienceTest of a program, which lives until the test program ends. There is one for each command line and
// number of replicas, so the undisturbed run is made only once. Not thread-safe. `time_limit` counts at the first call
// only.
inline ResilienceTest& resilience_test_of(const Program& program, std::chrono::milliseconds time_limit) {
  static std::map<std::pair<std::vector<std::string>, int>, ResilienceTest> tests;
  return tests.try_emplace({program.command, program.replicas}, program, ResilienceOptions{.time_limit = time_limit})
      .first->second;
}

// Runs the program under all these faults at once, and fails the test unless it survives and each fault struck. A
// failure prints the faults, the verdict and the end of the program's output. Errors, such as a fault that cannot be
// read, fail the test, too. Blocks until the run is over: twice the time limit at the first call, since the undisturbed
// run comes first.
inline void expect_survives(const Program& program, const std::vector<std::string>& faults,
                            std::chrono::milliseconds time_limit = std::chrono::minutes(2)) {
  std::string given;
  for (const std::string& fault : faults) given += (given.empty() ? "" : ";") + fault;
  SCOPED_TRACE("HOLDFAST_FAULTS='" + given + "'");
  try {
    const CaseResult result = resilience_test_of(program, time_limit).run({.faults = faults});
    EXPECT_TRUE(has_survived(result.verdict)) << to_string(result.verdict) << ": " << result.sentence << "\n"
                                              << result.run.output;
    EXPECT_EQ(result.run.faults_struck, static_cast<int>(faults.size()))
        << "not every fault struck: is there such a rank, and does it get to this step and phase?\n"
        << result.run.output;
  } catch (const std::exception& failure) {
    ADD_FAILURE() << failure.what();
  }
}

}  // namespace holdfast::resilience
