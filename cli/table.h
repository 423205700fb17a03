#pragma once

// A table of text, with aligned columns.

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::cli {

class Table {
 public:
  // A title that begins with '>' belongs to a column of numbers, which is aligned to the right.
  explicit Table(std::vector<std::string> header);

  // `row` has as many cells as the header. Control characters are replaced, and long cells cut.
  void add(std::vector<std::string> row);
  std::size_t size() const { return rows_.size() - 1; }
  // Columns are as wide as their widest cell, two spaces apart.
  void write(std::ostream& out) const;

 private:
  std::vector<bool> is_number_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace holdfast::cli
