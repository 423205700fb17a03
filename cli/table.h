#pragma once

// Rows of text under each other.

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::cli {

class Table {
 public:
  // `header` has a '>' in front of the columns that end at their right edge: numbers.
  explicit Table(std::vector<std::string> header);

  // As many cells as the header has. Control characters are taken out.
  void add(std::vector<std::string> row);
  std::size_t size() const { return rows_.size() - 1; }
  // Columns are as wide as their widest cell, two spaces apart.
  void write(std::ostream& out) const;

 private:
  std::vector<bool> is_number_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::cli
