#pragma once

// Where the command writes.

#include <ostream>

namespace holdfast::cli {

struct Console {
  std::ostream& out;
  std::ostream& problems;
  bool has_terminal = false;     // `problems` is a terminal: long work shows how far it is
  bool out_is_terminal = false;  // `out` is one: a table may be drawn over and over
};

}  // namespace holdfast::cli
