// What tables and encoders ask of columns, and the sentences for what they cannot have.

#include "data/tables/table_data.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "data/tables/nearest_name.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {

std::string_view to_string(ColumnType type) {
  switch (type) {
    case ColumnType::integer:
      return "integer";
    case ColumnType::real:
      return "real";
    default:
      return "text";
  }
}

// A search through the names: it is asked once for a column and not once for a cell.
std::size_t TableData::index_of(std::string_view column) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == column) return i;
  }
  std::vector<std::string> names;
  for (const TableColumn& other : columns) names.push_back(other.name);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} has no column {}; the nearest name is {}{}", path.empty() ? "the table" : quoted_path(path),
                  quoted_text(column), quoted_text(nearest_name(column, names)),
                  has_row_for_header
                      ? ". Its first line has a number, so it was taken for a row; if it holds the names, "
                        "set CsvOptions::header to CsvHeader::present"
                      : ""));
}

// Two columns of one name could not be told apart by any later function, and the second would never be read.
void check_column_names(const TableData& data, ErrorCode code) {
  std::set<std::string_view> names;
  for (const TableColumn& column : data.columns) {
    if (names.insert(column.name).second) continue;
    throw Error(code, fmt::format("{} has two columns named {}; give each a name of its own{}",
                                  data.path.empty() ? "the table" : quoted_path(data.path), quoted_text(column.name),
                                  data.path.empty() ? "" : ", for example by CsvOptions::names"));
  }
}

bool is_mostly_of_numbers(const TableColumn& column) {
  constexpr std::int64_t kFewestValues = 10;  // half of fewer may be numbers by chance
  return column.type == ColumnType::text && column.text_row >= 0 && column.values >= kFewestValues &&
         2 * column.numbers >= column.values;
}

// The row that made the column text is what the user looks for: mostly one cell of thousands holds "?" or "n/a". Cells
// may be long, so the sentence shows only the beginning of one.
std::string reason_of_text(const TableData& data, const TableColumn& column) {
  if (column.text_row < 0) return "as which it was declared";
  return fmt::format("since {} holds {}", data.place(column.text_row), quoted_text(column.texts[column.text_row], 40));
}

void require_numbers(const TableData& data, const TableColumn& column) {
  if (column.type != ColumnType::text) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("column {} is used as a number, but it is text, {}; correct that, add the value to "
                          "CsvOptions::missing if it stands for none, or use the column as a category",
                          quoted_text(column.name), reason_of_text(data, column)));
}

// Reals have no such text, since digits that print a double need not be those of the file. Callers refuse them before.
std::string category_of(const TableColumn& column, std::int64_t row) {
  HOLDFAST_ASSERT(column.type != ColumnType::real);
  if (column.is_missing(row)) return {};
  if (column.type == ColumnType::text) return std::string(column.texts[row]);
  return std::to_string(column.integers[static_cast<std::size_t>(row)]);
}

// Rows of a file of lines are named by their line, which an editor shows. A file without lines has row numbers alone.
std::string TableData::place(std::int64_t row) const {
  if (path.empty()) return fmt::format("row {} of the table", row);
  if (lines.empty()) return fmt::format("{}, row {}", quoted_path(path), row);
  return fmt::format("{}, line {}", quoted_path(path), lines[static_cast<std::size_t>(row)]);
}

}  // namespace holdfast
