#pragma once

// Tests whether a training program survives faults. The program runs once undisturbed, and then under faults. A run
// under faults must end in time, with the same weights, bit by bit, and without processes that live on.
//
// expect_survives.h is the short form for GoogleTest; this header needs no test framework.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

// The judgement of a run under faults. docs/faults.md says which faults may end a run or change its weights.
enum class Verdict {
  // It finished at the same step with the same weights.
  same_digest,
  // It ended with exit code 1 or 70 and a sentence, as documented for these faults.
  documented_stop,
  // It finished with other weights, as documented for these faults.
  documented_limit,
  // It finished with other weights, or at another step.
  other_digest,
  // It did not finish, although it should go on under these faults.
  ended,
  // It was killed at the time limit.
  out_of_time,
  // It ended, but some of its processes lived on.
  processes_left,
};

// In plain words, such as "same digest".
std::string_view to_string(Verdict verdict);
// True for the first three verdicts.
bool has_survived(Verdict verdict);

// One run under faults. The name appears in reports, and as the name of a kept run directory.
struct Case {
  std::string name{};                 // without spaces, such as "kill-forward-last-2"
  std::vector<std::string> faults{};  // specifications; see holdfast/recovery/fault_plan.h
  int replicas = 0;                   // replaces {replicas}; 0: the number of the program
};

// What became of a case.
struct CaseResult {
  Case test{};                       // that was run
  RunResult run{};                   // what was observed
  Verdict verdict = Verdict::ended;  // how it compares with the undisturbed run
  std::string sentence{};            // what was seen, with numbers
};

// Judges `run`, a run of `test`, by comparing it with the undisturbed run. A pure function.
CaseResult judge(const Case& test, const RunResult& undisturbed, const RunResult& run);

// How the runs of a test are made.
struct ResilienceOptions {
  // Each run must end within this time.
  std::chrono::milliseconds time_limit = std::chrono::minutes(2);
  // The folder in which the run directory of each case is kept, as FOLDER/NAME. Empty: none is kept.
  std::string keep_in{};
};

// One program and its undisturbed run. Use it from one thread, which must live as long as its runs (program_run.h).
//
//   ResilienceTest test({.command = {"./train", "--run-dir", "{run_dir}"}});
//   for (const Case& one : fault_matrix({})) report(test.run(one));
class ResilienceTest {
 public:
  // Keeps both, and starts nothing yet.
  explicit ResilienceTest(Program program, ResilienceOptions options = {});

  // Runs the program without faults at the first call, and blocks until that run is over. Later calls return the same
  // result. Throws Error{failed_replica}, with the program's last sentence, when it does not finish in time; also when
  // it lost a replica or went back to an earlier state, since nothing could be compared with it then.
  const RunResult& undisturbed();

  // Runs one case and judges it; blocks like run_program(). The number of replicas never changes the weights, so one
  // undisturbed run serves all cases. Throws what undisturbed() and run_program() throw.
  CaseResult run(const Case& test);

 private:
  Program program_;
  ResilienceOptions options_;
  std::optional<RunResult> undisturbed_;
};

}  // namespace holdfast::resilience
