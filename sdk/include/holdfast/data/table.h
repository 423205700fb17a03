#pragma once

// Rows of named columns, as in a CSV file. A column has one type, and each cell of it a value or none. A Table is what
// samples are made of: TableEncoder (holdfast/data/table_encoder.h) turns it into numbers.
//
//   const Table houses = read_csv("houses.csv");
//   std::cout << houses.summary();
//   const auto [training, validation] = houses.without_missing({"price"}).split(0.2, {.seed = 1});
//
// A Table is a handle on columns that never change: cheap to copy and safe to use from several threads. Functions that
// return a Table leave this one as it is, and the new one shares its columns.

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/data/skipped_samples.h"

namespace holdfast {

struct TableData;
struct TableSplit;

// The type of the cells of a column.
enum class ColumnType {
  integer,  // 64 bits
  real,     // 64 bits, finite
  text,     // UTF-8 without NUL
};

// A column of a Table that a program makes. A NaN and an empty text are cells without a value.
struct NamedColumn {
  std::string name;  // of the column
  // One for each row.
  std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
};

struct TableSplitOptions {
  std::uint64_t seed = 0;  // another seed draws other rows
};

class Table {
 public:
  // The rows of a program's own, for example those to predict for:
  //
  //   const Table asked({{"rooms", std::vector<std::int64_t>{3}}, {"city", std::vector<std::string>{"Bonn"}}});
  //
  // Throws Error{invalid_argument} without columns, for columns of other lengths, for two of one name, for an infinite
  // number, and for text that is not UTF-8 or holds a NUL.
  explicit Table(std::vector<NamedColumn> columns);
  // For Holdfast's own use.
  explicit Table(std::shared_ptr<const TableData> data);

  std::int64_t rows() const;  // the number of rows
  // The names of the columns, in their order.
  std::vector<std::string> columns() const;
  bool has_column(std::string_view column) const;  // whether a column has this name

  // The functions of a column throw Error{invalid_argument} if the table has none of that name; the message has the
  // nearest name.
  ColumnType type(std::string_view column) const;
  // How many cells of the column have no value, and whether that of a row in [0, rows()) has none.
  std::int64_t missing(std::string_view column) const;
  // Whether that of a row in [0, rows()) has none.
  bool is_missing(std::string_view column, std::int64_t row) const;
  // All values of a column of integers or reals. An integer of more than 53 bits is rounded. Throws
  // Error{invalid_argument} that names the row for a column of text, and for a cell without a value.
  std::vector<double> numbers(std::string_view column) const;
  // All values of a column as text: an integer in decimal digits, empty for a cell without a value. Throws
  // Error{invalid_argument} for a column of reals.
  std::vector<std::string> texts(std::string_view column) const;

  // The rows that have a value in each of these columns; without arguments, in all columns.
  Table without_missing() const;
  Table without_missing(const std::vector<std::string>& columns) const;

  // The first `count` rows, and all others. Throw Error{invalid_argument} for a negative count.
  Table take(std::int64_t count) const;
  // All rows but the first `count`.
  Table skip(std::int64_t count) const;

  // Draws rows for validation, as Dataset::split() draws samples: a fraction of all, or a count. The rest is for
  // training. The draw is a function of the seed and the number of rows. Both parts keep the order of the rows. Split
  // the table rather than its data set where means or vocabularies are taken from the data: those of the training part
  // then hold nothing of the other one.
  //
  // Throws Error{invalid_argument} unless both parts have a row, and Error{unsupported} for more than 2^32 - 1 rows.
  template <std::floating_point Fraction>
  TableSplit split(Fraction for_validation, TableSplitOptions options = {}) const;
  template <std::integral Count>
  requires(!std::same_as<Count, bool>) TableSplit split(Count for_validation, TableSplitOptions options = {})
  const;

  // The lines of the file that CsvOptions::skip_ragged left out, also of a part of the table.
  const SkippedSamples& skipped_rows() const;

  // For people: a line for each column with its type, its missing cells, and its range or number of categories.
  std::string summary() const;
  // Where a row comes from, for messages: "\"houses.csv\", line 17", or "row 15" of a program's own table.
  std::string place(std::int64_t row) const;

  // For Holdfast's own use: the columns, and the row of them that is row `row` of this table.
  const TableData& data() const { return *data_; }
  std::int64_t data_row(std::int64_t row) const;  // see above

 private:
  // Rows of this table, in rising order.
  Table chosen(std::vector<std::int64_t> rows) const;
  TableSplit split_off_fraction(double fraction, const TableSplitOptions& options) const;
  TableSplit split_off(std::int64_t count, const TableSplitOptions& options) const;

  std::shared_ptr<const TableData> data_;
  // Rows of the columns, in rising order. Null: all rows.
  std::shared_ptr<const std::vector<std::int64_t>> chosen_;
};

// The two parts that Table::split() draws.
struct TableSplit {
  Table training;    // the larger part, in most cases
  Table validation;  // the part that was drawn
};

template <std::floating_point Fraction>
TableSplit Table::split(Fraction for_validation, TableSplitOptions options) const {
  return split_off_fraction(static_cast<double>(for_validation), options);
}

template <std::integral Count>
requires(!std::same_as<Count, bool>) TableSplit Table::split(Count for_validation, TableSplitOptions options)
const {
  return split_off(static_cast<std::int64_t>(for_validation), options);
}

}  // namespace holdfast
