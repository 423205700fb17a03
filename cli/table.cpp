// Names may come from an unknown file. A cell is printable and has a limit, so that a file can neither move the cursor
// nor print gigabytes.

#include "table.h"

#include <algorithm>

#include "text.h"

namespace holdfast::cli {
namespace {

// The number of UTF-8 characters. Characters of double width are rare in names of arrays, so they count as one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> header) {
  for (std::string& title : header) {
    is_number_.push_back(title.starts_with('>'));
    if (is_number_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  // All rows are as wide as the widest one, so one huge name could make a table of gigabytes.
  constexpr std::size_t kMaxCellBytes = 500;
  for (std::string& cell : row) cell = shortened(printable(cell), kMaxCellBytes);
  row.resize(is_number_.size());
  rows_.push_back(std::move(row));
}

void Table::write(std::ostream& out) const {
  std::vector<std::size_t> widths(is_number_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (is_number_[i] ? gap + row[i] : row[i] + gap);
    }
    // Blanks at the end could wrap to a row of their own on a narrow terminal.
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace holdfast::cli
