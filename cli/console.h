#pragma once

// Where the command writes, and its exit codes.

#include <ostream>

namespace holdfast::cli {

// References and not std::cout itself, so that tests read what a command prints.
struct Console {
  std::ostream& out;
  std::ostream& problems;
  bool has_terminal = false;     // `problems` is a terminal: long work shows its progress
  bool out_is_terminal = false;  // `out` is a terminal: a table may be redrawn
};

// For scripts. As with diff(1): 0 means equal, 1 different, and 2 that there is no answer.
inline constexpr int kDone = 0;          // whole, equal, written
inline constexpr int kDamaged = 1;       // verify, prune, chaos
inline constexpr int kDifferent = 1;     // diff
inline constexpr int kCannotTrain = 1;   // doctor
inline constexpr int kWithoutModel = 1;  // convert: the arrays are written, the model could not be
inline constexpr int kNotDone = 2;       // wrong usage, or a file is missing, cannot be read or has a newer format

}  // namespace holdfast::cli
