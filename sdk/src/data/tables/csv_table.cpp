// The cells of a file are kept as text until its end, since a column may turn out to be text in its last row. Then each
// column is converted, and its text is given back, before the next one is. See docs/decisions/tables.md.

#include "data/tables/csv_table.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

using CellKind = CellNumber::Kind;

Error refused_options(const std::string& sentence) {
  return Error(ErrorCode::invalid_argument, fmt::format("read_csv(): {}", sentence));
}

void check_options(const CsvOptions& options) {
  // Letters, digits, signs, quotes and line ends have a meaning in fields. A byte above 0x7F is a part of a character
  // of UTF-8.
  const auto separator = static_cast<unsigned char>(options.separator);
  const bool separates = separator < 0x80 && !std::isalnum(separator) && separator != '\0' &&
                         std::string_view("\"\r\n-+").find(options.separator) == std::string_view::npos;
  if (!separates) {
    throw refused_options(fmt::format("the separator {} cannot be told from what it separates; use ',', ';' or a tab",
                                      quoted_text(std::string_view(&options.separator, 1))));
  }
  if (options.decimal_point != '.' && options.decimal_point != ',') {
    throw refused_options("decimal_point is '.' or ','");
  }
  if (options.decimal_point == options.separator) {
    throw refused_options("the decimal point is the separator; use another separator");
  }
  if (options.skip_ragged < 0) {
    throw refused_options(fmt::format("skip_ragged is a number of lines, not {}", options.skip_ragged));
  }
  for (const std::int64_t limit : {options.max_bytes, options.max_rows, options.max_columns, options.max_field_bytes}) {
    if (limit < 1) throw refused_options(fmt::format("limits are 1 or more, not {}", limit));
  }
}

// What is wrong with the file, as opposed to what is wrong with the options.
[[noreturn]] void refuse_csv(const std::string& sentence) {
  throw Error(ErrorCode::invalid_file, sentence);
}

CsvLimits limits_of(const CsvOptions& options) {
  return {.fields = static_cast<std::size_t>(options.max_columns),
          .field_bytes = static_cast<std::size_t>(options.max_field_bytes)};
}

}  // namespace

CsvTable::CsvTable(const std::string& path, const CsvOptions& options)
    : options_(options),
      // Cells are looked up as views, so no string is made for any of them.
      missing_(options.missing.begin(), options.missing.end()),
      parser_(path, options.separator, limits_of(options), [this](const CsvRecord& record) { take(record); }) {
  // After the parser was made of the same options. That is safe: it keeps its limits and reads nothing before feed().
  check_options(options);
  data_.path = path;
}

void CsvTable::feed(std::string_view bytes) {
  bytes_ += static_cast<std::int64_t>(bytes.size());
  // A small compressed file may expand without end.
  if (bytes_ > options_.max_bytes) {
    refuse_csv(fmt::format("{} has more than {} bytes of content; raise max_bytes to read it", quoted_path(data_.path),
                           options_.max_bytes));
  }
  parser_.feed(bytes);
}

// Types are found here, after the last row. One column is converted at a time and its text is freed, so the text of all
// columns and their numbers are never in memory together.
Table CsvTable::finish() {
  parser_.finish();
  if (data_.rows == 0) {
    refuse_csv(fmt::format("{} holds no row{}", quoted_path(data_.path),
                           has_header_ ? " after its header; if its first line is a row, set CsvOptions::header to "
                                         "CsvHeader::absent, else look at the program that wrote it"
                                       : "; look at its path, and at the program that wrote it"));
  }
  for (std::size_t column = 0; column < cells_.size(); ++column) {
    convert(column);
    cells_[column] = {};
  }
  return Table(std::make_shared<const TableData>(std::move(data_)));
}

void CsvTable::take(const CsvRecord& record) {
  if (data_.columns.empty()) {
    name_columns(record);
    if (has_header_) return;
  }
  add_row(record);
}

// Numbers are values. A name may be empty: some programs write a column of row numbers without one.
bool CsvTable::is_header(const CsvRecord& first) const {
  if (options_.header != CsvHeader::detect) return options_.header == CsvHeader::present;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (cell_number(first[i], options_.decimal_point).kind != CellKind::text) return false;
  }
  return true;
}

// The first record decides how many columns there are, whether it is a header or a row.
void CsvTable::name_columns(const CsvRecord& first) {
  has_header_ = is_header(first);
  data_.has_row_for_header = options_.header == CsvHeader::detect && options_.names.empty() && !has_header_;
  if (!options_.names.empty() && options_.names.size() != first.size()) {
    refuse_csv(fmt::format("{}, line {}: {} columns, but {} names were given; name all, or none",
                           quoted_path(data_.path), first.line(), first.size(), options_.names.size()));
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::string name = !options_.names.empty() ? options_.names[i] : has_header_ ? std::string(first[i]) : "";
    if (name.empty()) name = fmt::format("column_{}", i + 1);
    data_.columns.push_back({.name = std::move(name)});
  }
  cells_.resize(first.size());
  check_column_names(data_, ErrorCode::invalid_file);
  // For its error alone: a misspelt name in `types` would otherwise have no effect, and the column another type.
  for (const auto& [name, type] : options_.types) data_.index_of(name);
}

// Returns if the line may be left out. What was left out is part of the table, so that the log and the report of a run
// can name it.
void CsvTable::skip_or_refuse(const CsvRecord& ragged) {
  const std::string reason = fmt::format("{}, line {}: {} fields, where the first line has {}", quoted_path(data_.path),
                                         ragged.line(), ragged.size(), cells_.size());
  if (options_.skip_ragged == 0) {
    refuse_csv(
        fmt::format("{}; a cell without a value needs its separator, and a text with separators needs quotes", reason));
  }
  SkippedSamples& skipped = data_.skipped;
  if (skipped.count == options_.skip_ragged) {
    refuse_csv(fmt::format("{}; skip_ragged allows {} such lines, and the first was: {}", reason, options_.skip_ragged,
                           skipped.first.front()));
  }
  ++skipped.count;
  if (skipped.first.size() < SkippedSamples::kMostNamed) skipped.first.push_back(reason);
}

void CsvTable::add_row(const CsvRecord& record) {
  if (record.size() != cells_.size()) return skip_or_refuse(record);
  if (data_.rows >= options_.max_rows) {
    // Before the cells are kept, so that the limit bounds the memory of all columns too.
    refuse_csv(fmt::format("{}, line {}: more than {} rows; raise max_rows to read them", quoted_path(data_.path),
                           record.line(), options_.max_rows));
  }
  for (std::size_t column = 0; column < cells_.size(); ++column) cells_[column].append(record[column]);
  data_.lines.push_back(record.line());
  ++data_.rows;
}

CellNumber CsvTable::number(std::size_t column, std::int64_t row) const {
  return cell_number(cells_[column][row], options_.decimal_point);
}

void CsvTable::refuse_cell(std::size_t column, std::int64_t row, const std::string& reason) const {
  refuse_csv(fmt::format("{} ({}): {} {}",
                         csv_place(data_.path, data_.lines[static_cast<std::size_t>(row)], column + 1),
                         quoted_text(data_.columns[column].name), quoted_text(cells_[column][row], 40), reason));
}

// The order of types is integer, real, text, and a column gets the first one that holds all of its values. The row that
// made it text is kept, because users ask why a column of numbers is text, and so is the number of cells that are not
// numbers: few of them are mistakes. A column without any value is one of reals, so it can be filled with a number.
ColumnType CsvTable::found_type(std::size_t column) {
  TableColumn& into = data_.columns[column];
  ColumnType type = ColumnType::integer;
  for (std::int64_t row = 0; row < data_.rows; ++row) {
    if (is_missing(cells_[column][row])) continue;
    ++into.values;
    const CellKind kind = number(column, row).kind;
    if (kind == CellKind::text) {
      if (into.text_row < 0) into.text_row = row;
      continue;
    }
    ++into.numbers;
    // A whole number of more than 64 bits leaves the column integer. convert_integers() then refuses it by its line,
    // unless a real elsewhere says that the column is one of measurements, which may be rounded.
    if (kind == CellKind::real || kind == CellKind::out_of_range) type = ColumnType::real;
  }
  if (into.text_row >= 0) return ColumnType::text;
  return into.values > 0 ? type : ColumnType::real;
}

// A declared type is not looked for, so a value of another type is an error and not a wider column.
void CsvTable::convert(std::size_t column) {
  TableColumn& into = data_.columns[column];
  const auto declared = options_.types.find(into.name);
  into.type = declared != options_.types.end() ? declared->second : found_type(column);
  for (std::int64_t row = 0; row < data_.rows; ++row) {
    // Cells of all types are marked first. A missing cell of text keeps its spelling,
    // "NA" or "", which category_of() hides.
    if (is_missing(cells_[column][row])) into.set_missing(row, data_.rows);
  }
  switch (into.type) {
    case ColumnType::integer:
      return convert_integers(column);
    case ColumnType::real:
      return convert_reals(column);
    case ColumnType::text:
      into.texts = std::move(cells_[column]);
  }
}

void CsvTable::convert_integers(std::size_t column) {
  TableColumn& into = data_.columns[column];
  into.integers.resize(static_cast<std::size_t>(data_.rows));
  for (std::int64_t row = 0; row < data_.rows; ++row) {
    if (into.is_missing(row)) continue;
    const CellNumber cell = number(column, row);
    if (cell.kind == CellKind::wide_integer) {
      refuse_cell(column, row, "has more than 64 bits; declare the column as real or text in `types`");
    }
    if (cell.kind != CellKind::integer) refuse_cell(column, row, "is not an integer, as which it was declared");
    into.integers[static_cast<std::size_t>(row)] = cell.integer;
  }
}

void CsvTable::convert_reals(std::size_t column) {
  TableColumn& into = data_.columns[column];
  into.reals.resize(static_cast<std::size_t>(data_.rows));
  for (std::int64_t row = 0; row < data_.rows; ++row) {
    if (into.is_missing(row)) continue;
    const CellNumber cell = number(column, row);
    if (cell.kind == CellKind::out_of_range) {
      refuse_cell(column, row,
                  "is outside of the range of 64-bit floats; correct it, add it to `missing`, or declare the column "
                  "as text in `types`");
    }
    if (cell.kind == CellKind::text) refuse_cell(column, row, "is not a number, as which it was declared");
    into.reals[static_cast<std::size_t>(row)] = cell.real;
  }
}

}  // namespace holdfast
