#pragma once

// The supervise() calls of a program, in the order of main(). Each process of the program counts its own; what the
// first process has returned from them travels to the replicas of a later call.

#include <string>
#include <vector>

namespace holdfast {

struct ProgramCall {
  std::string directory{};  // digest of the run directory's absolute path
  int exit_code = 0;        // of a call that has returned
};

ProgramCall call_of(const std::string& run_directory);

// What a replica was started for: the last of these calls.
struct AssignedCalls {
  std::vector<ProgramCall> earlier{};
  ProgramCall own{};
};

// As JSON.
std::string to_text(const AssignedCalls& calls);
// Reads a text that to_text() has written.
AssignedCalls assigned_calls_from(const std::string& text);

}  // namespace holdfast
