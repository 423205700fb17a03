#pragma once

// The supervise() calls of a program, in the order of main(). Each process of the program counts its own calls. The
// replicas of a later call get the exit codes that the earlier calls returned in the first process.

#include <string>
#include <vector>

namespace holdfast {

struct ProgramCall {
  std::string directory{};  // digest of the run directory's absolute path
  int exit_code = 0;        // once the call has returned
};

ProgramCall call_of(const std::string& run_directory);

// The calls of a program up to the one that a replica was started for.
struct AssignedCalls {
  std::vector<ProgramCall> earlier{};
  ProgramCall own{};
};

// A JSON text.
std::string to_text(const AssignedCalls& calls);
// Parses a text that to_text() has written.
AssignedCalls assigned_calls_from(const std::string& text);

}  // namespace holdfast
