#pragma once

// A terminal for a test. A program writes to one end, and a model of a screen shows the result.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// A model of what our lines need. It wraps lines that are too long, and wraps all lines again when its width changes,
// as most terminals do.
class TerminalScreen {
 public:
  explicit TerminalScreen(int columns) : columns_(columns) {}

  // Accepts characters that take one column, \r, \n, and the escape sequences K, J and m. Throws for all others.
  void take(std::string_view text);
  void resize(int columns);

  // The rows from the first to the last that is not empty, without spaces at their ends.
  std::vector<std::string> rows() const;

 private:
  struct Row {
    std::string text{};
    bool goes_on = false;  // the next row continues this line
  };

  void put(char character);
  void obey(char command);
  void new_row(bool goes_on);

  int columns_;
  std::vector<Row> rows_{1};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::string escape_{};  // an escape sequence that has begun
};

class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // The end for the program: a descriptor that is a terminal.
  int program_end() const { return program_end_; }
  void resize(int columns);
  // The screen with everything that was written so far.
  const TerminalScreen& screen();
  const std::string& written() const { return written_; }

 private:
  int own_end_ = -1;
  int program_end_ = -1;
  TerminalScreen screen_;
  std::string written_;
};

}  // namespace holdfast
