#pragma once

// A terminal for a test: what is written to its end for programs, a model of a screen shows.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Models what our lines need: it wraps lines that are too long, and wraps all lines anew when its width changes, as
// most terminals do.
class TerminalScreen {
 public:
  explicit TerminalScreen(int columns) : columns_(columns) {}

  // Characters that take one column, \r, \n, and the escape sequences K, J and m; throws at any other.
  void take(std::string_view text);
  void resize(int columns);

  // From the first to the last that is not empty, without spaces at their ends.
  std::vector<std::string> rows() const;

 private:
  struct Row {
    std::string text{};
    bool goes_on = false;  // the next row is the same line
  };

  void put(char character);
  void obey(char command);
  void new_row(bool goes_on);

  int columns_;
  std::vector<Row> rows_{1};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::string escape_{};  // that has begun
};

class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // For the program: a descriptor that is a terminal.
  int program_end() const { return program_end_; }
  void resize(int columns);
  // What was written until now.
  const TerminalScreen& screen();
  const std::string& written() const { return written_; }

 private:
  int own_end_ = -1;
  int program_end_ = -1;
  TerminalScreen screen_;
  std::string written_;
};

}  // namespace holdfast
