#pragma once

// The run directory of one run, and the command line that names it.

#include <string>
#include <vector>

#include "holdfast/testing/program_run.h"

namespace holdfast::resilience {

// Where temporary files belong: what TMPDIR names, or /tmp. Throws the Error of system_error() when that is not a
// folder.
std::string folder_for_temporary_files();

class RunFolder {
 public:
  // Empty: a temporary folder, which is deleted with its contents. Throws Error{invalid_argument} when `wanted` exists,
  // and the Error of system_error() when no folder can be made.
  explicit RunFolder(const std::string& wanted);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& run_directory() const { return run_directory_; }

 private:
  std::string temporary_;
  std::string run_directory_;
};

// The program's command line, with its placeholders replaced. Throws Error{invalid_argument} when the command is empty,
// or when no argument contains {run_dir}.
std::vector<std::string> command_of(const Program& program, const std::string& run_directory);

}  // namespace holdfast::resilience
