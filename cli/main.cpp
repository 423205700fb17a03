// The `holdfast` command.

#include <unistd.h>

#include <iostream>

#include "command.h"

int main(int argc, char** argv) {
  holdfast::cli::Console console{.out = std::cout, .problems = std::cerr, .has_terminal = ::isatty(STDERR_FILENO) == 1};
  return holdfast::cli::run_command({argv + 1, argv + argc}, holdfast::posix_file_system(), console);
}
