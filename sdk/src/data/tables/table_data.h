#pragma once

// The columns of a Table, which several tables share.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/data/table.h"

namespace holdfast {

// Many texts in two blocks of memory. A std::string for each cell would take 32 bytes more.
class TextCells {
 public:
  void append(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  std::string_view operator[](std::int64_t cell) const {
    const auto index = static_cast<std::size_t>(cell);
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;  // of each text in bytes_
};

struct TableColumn {
  std::string name;
  ColumnType type = ColumnType::real;
  std::vector<std::int64_t> integers = {};  // of a column of integers; 0 where there is no value
  std::vector<double> reals = {};           // of a column of reals; 0 where there is no value
  TextCells texts = {};                     // of a column of text
  std::vector<bool> missing = {};           // for each row; empty if all rows have a value
  std::int64_t text_row = -1;  // of text: the row for which the column is not one of numbers; -1: it was declared so
  // How many values a column of text has that was not declared, and how many of them spell a number.
  std::int64_t values = 0;
  std::int64_t numbers = 0;

  bool is_missing(std::int64_t row) const { return !missing.empty() && missing[static_cast<std::size_t>(row)]; }
  void set_missing(std::int64_t row, std::int64_t rows) {
    if (missing.empty()) missing.resize(static_cast<std::size_t>(rows));
    missing[static_cast<std::size_t>(row)] = true;
  }
  // Only a column of integers or reals has these.
  double number(std::int64_t row) const {
    const auto index = static_cast<std::size_t>(row);
    return type == ColumnType::integer ? static_cast<double>(integers[index]) : reals[index];
  }
};

struct TableData {
  std::string path = {};                 // of the file; empty for a table that a program made
  std::vector<std::int64_t> lines = {};  // of each row in the file, counted from 1; empty if it has no lines
  std::vector<TableColumn> columns = {};
  std::int64_t rows = 0;
  SkippedSamples skipped = {};      // lines of the file that were left out
  bool has_row_for_header = false;  // the first line of a CSV file was found to be a row, and nobody had said so

  // "\"houses.csv\", line 17", "\"houses.parquet\", row 15", or "row 15 of the table".
  std::string place(std::int64_t row) const;
  // The position of a column. Throws Error{invalid_argument} with the nearest name if there is none.
  std::size_t index_of(std::string_view column) const;
};

// "integer", "real" or "text".
std::string_view to_string(ColumnType type);

// Whether a column became text although half of its values or more are numbers, of at least 10 values: the others are
// likely mistakes, or words for no value. A text that was declared is meant as one.
bool is_mostly_of_numbers(const TableColumn& column);

// "since \"houses.csv\", line 17 holds \"12o\"": the first cell that is not a number.
std::string reason_of_text(const TableData& data, const TableColumn& column);

// Throws Error{invalid_argument} that names the row for which a column of text is not one of numbers.
void require_numbers(const TableData& data, const TableColumn& column);

// The value of a cell as a category: a text as it is, an integer in decimal digits; empty without a value. Asserts that
// the column is not one of reals.
std::string category_of(const TableColumn& column, std::int64_t row);

// Throws Error{code} if two columns have one name.
void check_column_names(const TableData& data, ErrorCode code);

}  // namespace holdfast
