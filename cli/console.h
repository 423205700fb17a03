#pragma once

// Where the command writes.

#include <ostream>

namespace holdfast::cli {

// References and not std::cout itself, so that tests read what a command prints.
struct Console {
  std::ostream& out;
  std::ostream& problems;
  bool has_terminal = false;     // `problems` is a terminal: long work shows its progress
  bool out_is_terminal = false;  // `out` is a terminal: a table may be redrawn
};

}  // namespace holdfast::cli
