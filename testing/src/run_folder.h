#pragma once

// The run directory of one run, and the command line that names it.

#include <string>
#include <vector>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

class RunFolder {
 public:
  // Empty: a temporary folder, which is deleted with what is in it. Throws Error{invalid_argument} when another one
  // exists, Error{input_output} when none can be made.
  explicit RunFolder(const std::string& wanted);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& run_directory() const { return run_directory_; }

 private:
  std::string temporary_;
  std::string run_directory_;
};

// With the placeholders filled in. Throws Error{invalid_argument} when there is no program, or no {run_dir}.
std::vector<std::string> command_of(const Program& program, const std::string& run_directory);

// The last line with anything in it.
std::string last_line(const std::string& output);

}  // namespace holdfast::resilience
