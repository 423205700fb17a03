// The `holdfast` command.

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "command.h"

int main(int argc, char** argv) {
  namespace cli = holdfast::cli;
  std::ios::sync_with_stdio(false);  // tables may have ten thousand rows
  cli::Console console{.out = std::cout,
                       .problems = std::cerr,
                       .has_terminal = ::isatty(STDERR_FILENO) == 1,
                       .out_is_terminal = ::isatty(STDOUT_FILENO) == 1};
  // execve() allows an empty list of arguments, so argc may be 0.
  const int exit_code =
      cli::run_command({argv + std::min(argc, 1), argv + argc}, holdfast::posix_file_system(), console);
  if (std::cout.flush()) return exit_code;
  // Otherwise a script would take half a table for a whole one.
  std::cerr << "holdfast: the output cannot be written to standard output; is the disk full?\n";
  return cli::kNotDone;
}
