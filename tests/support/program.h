#pragma once

// Runs programs of this build as a user would, and returns what they write.

#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace holdfast {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal's number if a signal ended it
  std::string output;  // standard output and standard error together
  bool timed_out = false;
};

// A program that runs in a process group of its own, which the destructor kills.
class RunningProgram {
 public:
  // `arguments` do not include the program's name. The output is collected in the background. `before_exec` is called
  // in the new process, so it may only make system calls.
  RunningProgram(const std::string& path, const std::vector<std::string>& arguments,
                 const std::function<void()>& before_exec = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  int pid() const { return pid_; }
  void signal(int number) const;
  // Stops reading the output: the next write of the program fails.
  void close_output();
  // Reads the output until `text` is in it. False when the output ends before, or after the time limit.
  bool writes(const std::string& text, std::chrono::seconds limit = std::chrono::seconds(120));
  // Waits for the end of the program, and kills it after the time limit.
  ProgramResult wait(std::chrono::seconds limit = std::chrono::seconds(120));

 private:
  int pid_ = -1;
  int output_ = -1;
  std::string collected_;  // of the output, until now
  bool is_reaped_ = false;
};

ProgramResult run_program(const std::string& path, const std::vector<std::string>& arguments,
                          std::chrono::seconds limit = std::chrono::seconds(120));

// The path of a program of this build.
std::string built_program(const std::string& name);

std::string read_file(const std::string& path);

}  // namespace holdfast
