#pragma once

// Makes a Table of the bytes of a CSV file, which come in pieces of any size.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/tables/cell_number.h"
#include "data/tables/csv_parser.h"
#include "data/tables/table_data.h"
#include "holdfast/data/csv.h"

namespace holdfast {

class CsvTable {
 public:
  // `path` is for messages. The options must outlive this object. Throws as read_csv() does, and so do the functions
  // below.
  CsvTable(const std::string& path, const CsvOptions& options);
  CsvTable(const CsvTable&) = delete;
  CsvTable& operator=(const CsvTable&) = delete;

  void feed(std::string_view bytes);
  // The end of the file, after which no other call is allowed.
  Table finish();

 private:
  void take(const CsvRecord& record);
  bool is_header(const CsvRecord& first) const;
  void name_columns(const CsvRecord& first);
  void skip_or_refuse(const CsvRecord& ragged);
  void add_row(const CsvRecord& record);
  bool is_missing(std::string_view cell) const { return missing_.contains(cell); }
  CellNumber number(std::size_t column, std::int64_t row) const;
  // The narrowest type of all values. Sets the row for which a column is text.
  ColumnType found_type(std::size_t column);
  void convert(std::size_t column);
  void convert_integers(std::size_t column);
  void convert_reals(std::size_t column);
  [[noreturn]] void refuse_cell(std::size_t column, std::int64_t row, const std::string& reason) const;

  const CsvOptions& options_;
  const std::unordered_set<std::string_view> missing_;  // views of the options
  CsvParser parser_;
  bool has_header_ = false;
  std::int64_t bytes_ = 0;
  TableData data_;
  std::vector<TextCells> cells_;  // of each column
};

}  // namespace holdfast
