// A Table is a list of rows of columns that it shares with the tables that it was made from: a split or a selection
// copies no cell. Columns are never changed, so their text and numbers need no lock. See docs/decisions/tables.md.

#include "holdfast/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "data/stages/split_positions.h"
#include "data/tables/table_data.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

Error refused_table(const std::string& sentence) {
  return Error(ErrorCode::invalid_argument, sentence);
}

[[noreturn]] void refuse_value(const NamedColumn& column, std::size_t row, const char* reason) {
  throw refused_table(fmt::format("column {} of a table: row {} {}", quoted_text(column.name), row, reason));
}

std::size_t rows_of(const NamedColumn& column) {
  return std::visit([](const auto& values) { return values.size(); }, column.values);
}

// Fills a column from values of a program.
// NaN and the empty text stand for no value, as in files. The cell itself becomes 0 or stays empty, which readers must
// not take for a value: they ask is_missing() first.
struct ColumnFiller {
  const NamedColumn& given;
  TableColumn& column;

  // No integer could stand for a missing value, so no cell of such a column is missing.
  void operator()(const std::vector<std::int64_t>& values) const {
    column.type = ColumnType::integer;
    column.integers = values;
  }
  void operator()(const std::vector<double>& values) const {
    column.type = ColumnType::real;
    column.reals = values;
    for (std::size_t row = 0; row < values.size(); ++row) {
      if (std::isinf(values[row])) refuse_value(given, row, "is infinite; use a finite number, or NaN for no value");
      if (!std::isnan(values[row])) continue;
      column.reals[row] = 0;
      column.set_missing(static_cast<std::int64_t>(row), static_cast<std::int64_t>(values.size()));
    }
  }
  void operator()(const std::vector<std::string>& values) const {
    column.type = ColumnType::text;
    for (std::size_t row = 0; row < values.size(); ++row) {
      if (!is_utf8(values[row])) refuse_value(given, row, "is not UTF-8 without NUL; convert it");
      column.texts.append(values[row]);
      if (values[row].empty())
        column.set_missing(static_cast<std::int64_t>(row), static_cast<std::int64_t>(values.size()));
    }
  }
};

std::shared_ptr<const TableData> data_of_columns(const std::vector<NamedColumn>& columns) {
  if (columns.empty()) throw refused_table("a table needs at least one column");
  TableData data;
  data.rows = static_cast<std::int64_t>(rows_of(columns[0]));
  for (const NamedColumn& given : columns) {
    if (rows_of(given) != rows_of(columns[0])) {
      throw refused_table(fmt::format("column {} of a table has {} rows, where {} has {}", quoted_text(given.name),
                                      rows_of(given), quoted_text(columns[0].name), rows_of(columns[0])));
    }
    // Names and cells come into messages, descriptions and JSON of encoders, which are UTF-8.
    if (!is_utf8(given.name)) throw refused_table("the name of a column is not UTF-8 without NUL; convert it");
    data.columns.push_back({.name = given.name});
    std::visit(ColumnFiller{given, data.columns.back()}, given.values);
  }
  // Last, since its sentence shows a name, and names are known to be UTF-8 by now.
  check_column_names(data, ErrorCode::invalid_argument);
  return std::make_shared<const TableData>(std::move(data));
}

}  // namespace

Table::Table(std::vector<NamedColumn> columns) : Table(data_of_columns(columns)) {}

Table::Table(std::shared_ptr<const TableData> data) : data_(std::move(data)) {
  HOLDFAST_ASSERT(data_ != nullptr);
}

std::int64_t Table::rows() const {
  return chosen_ ? static_cast<std::int64_t>(chosen_->size()) : data_->rows;
}

// The only way from a row of this table to one of its columns. It checks the row, since callers pass what users gave.
std::int64_t Table::data_row(std::int64_t row) const {
  if (row < 0 || row >= rows()) {
    throw refused_table(fmt::format("there is no row {} in a table of {} rows", row, rows()));
  }
  return chosen_ ? (*chosen_)[static_cast<std::size_t>(row)] : row;
}

std::vector<std::string> Table::columns() const {
  std::vector<std::string> names;
  for (const TableColumn& column : data_->columns) names.push_back(column.name);
  return names;
}

bool Table::has_column(std::string_view column) const {
  return std::ranges::any_of(data_->columns, [&](const TableColumn& each) { return each.name == column; });
}

ColumnType Table::type(std::string_view column) const {
  return data_->columns[data_->index_of(column)].type;
}

std::int64_t Table::missing(std::string_view column) const {
  const TableColumn& found = data_->columns[data_->index_of(column)];
  // Counted here and not kept in the column: this table may have chosen only some of its rows.
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows(); ++row) count += found.is_missing(data_row(row)) ? 1 : 0;
  return count;
}

bool Table::is_missing(std::string_view column, std::int64_t row) const {
  return data_->columns[data_->index_of(column)].is_missing(data_row(row));
}

// A cell without a value is refused rather than given as NaN, which would spread through everything computed from it.
std::vector<double> Table::numbers(std::string_view column) const {
  const TableColumn& found = data_->columns[data_->index_of(column)];
  require_numbers(*data_, found);
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::int64_t in_data = data_row(row);
    if (found.is_missing(in_data)) {
      throw refused_table(fmt::format("{}: column {} has no value there; leave such rows out by without_missing()",
                                      place(row), quoted_text(column)));
    }
    values.push_back(found.number(in_data));
  }
  return values;
}

// Unlike numbers(), this gives cells without a value, as empty texts.
std::vector<std::string> Table::texts(std::string_view column) const {
  const TableColumn& found = data_->columns[data_->index_of(column)];
  if (found.type == ColumnType::real) {
    throw refused_table(
        fmt::format("column {} is one of reals, which have no text of their own; take numbers(), or declare the column "
                    "as text in CsvOptions::types",
                    quoted_text(column)));
  }
  std::vector<std::string> values;
  for (std::int64_t row = 0; row < rows(); ++row) values.push_back(category_of(found, data_row(row)));
  return values;
}

// Rows are translated to those of the columns at once, so a table that was cut many times looks them up in one step.
// The columns are shared, and what was skipped in the file is kept with them.
Table Table::chosen(std::vector<std::int64_t> rows) const {
  for (std::int64_t& row : rows) row = data_row(row);
  Table table = *this;
  table.chosen_ = std::make_shared<const std::vector<std::int64_t>>(std::move(rows));
  return table;
}

Table Table::without_missing() const {
  return without_missing(columns());
}

Table Table::without_missing(const std::vector<std::string>& columns) const {
  std::vector<const TableColumn*> wanted;
  // All columns are found before the first row, so a wrong name costs no pass over the table.
  for (const std::string& column : columns) wanted.push_back(&data_->columns[data_->index_of(column)]);
  std::vector<std::int64_t> kept;
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::int64_t in_data = data_row(row);
    if (std::ranges::none_of(wanted, [&](const TableColumn* column) { return column->is_missing(in_data); })) {
      kept.push_back(row);
    }
  }
  return chosen(std::move(kept));
}

Table Table::take(std::int64_t count) const {
  if (count < 0) throw refused_table(fmt::format("take() needs a number of at least 0, not {}", count));
  // More rows than there are mean all of them.
  std::vector<std::int64_t> kept(static_cast<std::size_t>(std::min(count, rows())));
  std::iota(kept.begin(), kept.end(), std::int64_t{0});
  return chosen(std::move(kept));
}

Table Table::skip(std::int64_t count) const {
  if (count < 0) throw refused_table(fmt::format("skip() needs a number of at least 0, not {}", count));
  const std::int64_t first = std::min(count, rows());
  std::vector<std::int64_t> kept(static_cast<std::size_t>(rows() - first));
  std::iota(kept.begin(), kept.end(), first);
  return chosen(std::move(kept));
}

TableSplit Table::split_off_fraction(double fraction, const TableSplitOptions& options) const {
  // Otherwise the sentence would blame the fraction, which leaves no row here whatever it is.
  if (rows() == 0) {
    throw refused_table(
        fmt::format("split() of {} without rows: they were all left out before it; see what summary() "
                    "says of the whole table, a column without any value for example",
                    data_->path.empty() ? "a table" : "\"" + data_->path + "\""));
  }
  return split_off(samples_of_fraction(fraction, rows(), "row"), options);
}

TableSplit Table::split_off(std::int64_t count, const TableSplitOptions& options) const {
  if (count < 1 || count >= rows()) {
    throw refused_table(fmt::format(
        "split() of {} rows for validation out of {} would leave a part without rows; split off 1 or more, and fewer "
        "than there are",
        count, rows()));
  }
  // Positions of splits have 4 bytes, as those of Dataset::split().
  if (rows() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("split() takes up to 4294967295 rows, not {}; use take() and skip() on so many", rows()));
  }
  SplitPositions::Positions all(static_cast<std::size_t>(rows()));
  std::iota(all.begin(), all.end(), 0U);
  SplitPositions parts;
  // A part that is split again with the same seed must not be drawn alike, so the number of rows enters.
  parts.add(std::move(all), count, Random(options.seed, Purpose::split, 0, static_cast<std::uint64_t>(rows())));
  // The order of the file stays in both parts, and with it the order of every later sum.
  parts.sort();
  const auto part = [&](const SplitPositions::Positions& rows) { return chosen({rows.begin(), rows.end()}); };
  return {.training = part(parts.training), .validation = part(parts.validation)};
}

const SkippedSamples& Table::skipped_rows() const {
  return data_->skipped;
}

std::string Table::place(std::int64_t row) const {
  return data_->place(data_row(row));
}

}  // namespace holdfast
