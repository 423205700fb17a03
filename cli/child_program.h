#pragma once

// Runs a short helper program to its end:
//
//   const auto result = run_child({"dot", "-Tsvg"}, drawing, Deadline::after(std::chrono::seconds(60)));

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/deadline.h"

namespace holdfast::cli {

struct ChildResult {
  int exit_code = 0;  // 128 + the signal's number if a signal ended it
  std::string output{};
  std::string problems{};  // what it wrote to standard error
};

// Runs `command`, whose program is looked up in PATH, in a process group of its own. It reads `input` from standard
// input. Empty if there is no such program. Throws Error{deadline_exceeded} after it has killed the group, and
// Error{input_output} if the system cannot run it.
std::optional<ChildResult> run_child(const std::vector<std::string>& command, std::string_view input,
                                     Deadline deadline);

}  // namespace holdfast::cli
