#pragma once

// Whether a program survives: it is run once undisturbed and then under faults, and must end with the same weights, bit
// by bit, in time, and leave no process behind.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

enum class Verdict {
  same_digest,       // it finished at the same step with the same weights
  documented_stop,   // it ended with exit code 1 or 70 and a sentence, as docs/faults.md says of these faults
  documented_limit,  // it finished with other weights, which docs/faults.md says that these faults may cause
  other_digest,      // it finished with other weights or at another step
  ended,             // it did not finish, though these faults let it go on
  out_of_time,
  processes_left,  // it ended, and some of its processes did not
};

// In plain words: "same digest".
std::string_view to_string(Verdict verdict);
// The first three.
bool has_survived(Verdict verdict);

struct Case {
  std::string name{};
  std::vector<std::string> faults{};
  int replicas = 0;  // in place of {replicas}; 0: as many as the program of the test says
};

struct CaseResult {
  Case test{};
  RunResult run{};
  Verdict verdict = Verdict::ended;
  std::string sentence{};  // what was seen, with the numbers
};

// What a run under `faults` has to be called, next to one that nobody disturbed. Pure.
CaseResult judge(const Case& test, const RunResult& undisturbed, const RunResult& run);

struct ResilienceOptions {
  std::chrono::milliseconds time_limit = std::chrono::minutes(2);  // of each run
  // Where the run directories of the cases stay, as FOLDER/NAME; empty: they are deleted.
  std::string keep_in{};
};

class ResilienceTest {
 public:
  explicit ResilienceTest(Program program, ResilienceOptions options = {});

  // Made at the first call. Throws Error{failed_replica} with the program's last words when it does not finish by
  // itself, or with what failed in it when it lost a replica or went back to an earlier state: nothing could be
  // compared then.
  const RunResult& undisturbed();
  // Any number of replicas must give the same bits, so that one undisturbed run serves all cases.
  CaseResult run(const Case& test);

 private:
  Program program_;
  ResilienceOptions options_;
  std::optional<RunResult> undisturbed_;
};

}  // namespace holdfast::resilience
