// What a user would see on a terminal: tests compare the screen, not the bytes, because many bytes show one picture.

#include "support/pseudo_terminal.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace holdfast {
namespace {

// Written by the test itself: no program under test writes this sequence.
constexpr std::string_view kEndOfWhatWasWritten = "\x1b[99m";

winsize size_of(int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  return size;
}

}  // namespace

void TerminalScreen::take(std::string_view text) {
  for (const char character : text) put(character);
}

void TerminalScreen::put(char character) {
  if (!escape_.empty() || character == '\x1b') {
    escape_ += character;
    const bool is_over = escape_.size() > 2 && character >= '@' && character <= '~';
    if (is_over) obey(character);
    return;
  }
  if (character == '\r') {
    column_ = 0;
  } else if (character == '\n') {
    new_row(false);
  } else {
    if (column_ == static_cast<std::size_t>(columns_)) {
      new_row(true);
      column_ = 0;
    }
    std::string& row = rows_[row_].text;
    row.resize(std::max(row.size(), column_ + 1), ' ');
    row[column_++] = character;
  }
}

void TerminalScreen::obey(char command) {
  escape_.clear();
  if (command == 'm') return;
  if (command != 'K' && command != 'J') throw std::runtime_error("the screen does not know this escape sequence");
  std::string& row = rows_[row_].text;
  row.resize(std::min(row.size(), column_));
  rows_[row_].goes_on = false;
  if (command == 'J') rows_.resize(row_ + 1);
}

void TerminalScreen::new_row(bool goes_on) {
  rows_[row_].goes_on = goes_on;
  if (++row_ == rows_.size()) rows_.emplace_back();
}

void TerminalScreen::resize(int columns) {
  const std::vector<Row> before = std::exchange(rows_, std::vector<Row>(1));
  const std::size_t cursor_row = row_;
  const std::size_t cursor_column = column_;
  columns_ = columns;
  row_ = column_ = 0;
  std::size_t new_cursor_row = 0;
  std::size_t new_cursor_column = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (std::size_t at = 0; at <= before[i].text.size(); ++at) {
      if (i == cursor_row && at == std::min(cursor_column, before[i].text.size())) {
        new_cursor_row = row_;
        new_cursor_column = column_;
      }
      if (at < before[i].text.size()) put(before[i].text[at]);
    }
    if (!before[i].goes_on && i + 1 < before.size()) {
      new_row(false);
      column_ = 0;
    }
  }
  row_ = new_cursor_row;
  column_ = new_cursor_column;
}

std::vector<std::string> TerminalScreen::rows() const {
  std::vector<std::string> shown;
  for (const Row& row : rows_) shown.push_back(row.text.substr(0, row.text.find_last_not_of(' ') + 1));
  while (!shown.empty() && shown.back().empty()) shown.pop_back();
  return shown;
}

PseudoTerminal::PseudoTerminal(int columns) : screen_(columns) {
  const winsize size = size_of(columns);
  if (::openpty(&own_end_, &program_end_, nullptr, nullptr, &size) != 0) throw std::runtime_error("no pseudo terminal");
}

PseudoTerminal::~PseudoTerminal() {
  ::close(own_end_);
  ::close(program_end_);
}

void PseudoTerminal::resize(int columns) {
  screen();
  screen_.resize(columns);
  const winsize size = size_of(columns);
  ::ioctl(own_end_, TIOCSWINSZ, &size);
}

const TerminalScreen& PseudoTerminal::screen() {
  std::string text;
  if (::write(program_end_, kEndOfWhatWasWritten.data(), kEndOfWhatWasWritten.size()) < 0) {
    throw std::runtime_error("the pseudo terminal cannot be written to");
  }
  while (!text.ends_with(kEndOfWhatWasWritten)) {
    pollfd readable{.fd = own_end_, .events = POLLIN, .revents = 0};
    char bytes[4096];
    if (::poll(&readable, 1, 10'000) != 1) throw std::runtime_error("nothing was written to the pseudo terminal");
    const ssize_t count = ::read(own_end_, bytes, sizeof bytes);
    if (count <= 0) throw std::runtime_error("the pseudo terminal cannot be read");
    text.append(bytes, static_cast<std::size_t>(count));
  }
  text.resize(text.size() - kEndOfWhatWasWritten.size());
  written_ += text;
  screen_.take(text);
  return screen_;
}

}  // namespace holdfast
