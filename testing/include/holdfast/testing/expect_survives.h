#pragma once

// For tests with GoogleTest, which this header needs and the library does not:
//
//   TEST(MyTraining, SurvivesTheDeathOfAReplica) {
//     holdfast::resilience::expect_survives({.command = {"./train", "--run-dir", "{run_dir}"}},
//                                           {"rank=1,step=120,fault=kill"});
//   }

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/testing/resilience_test.h"

namespace holdfast::resilience {

// One for each command line, so that a program's undisturbed run is made once in a test program. From one thread alone.
inline ResilienceTest& resilience_test_of(const Program& program, std::chrono::milliseconds time_limit) {
  static std::map<std::pair<std::vector<std::string>, int>, ResilienceTest> tests;
  return tests.try_emplace({program.command, program.replicas}, program, ResilienceOptions{.time_limit = time_limit})
      .first->second;
}

// Fails the test, with what was seen, unless the program survives all these faults in one run and each of them struck.
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
