#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "data/tables/table_data.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

// Integers are shown as doubles with six digits: a summary is for people, and nothing is computed from it.
std::string shown_range(const Table& table, const TableColumn& column) {
  std::optional<std::pair<double, double>> range;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const std::int64_t in_data = table.data_row(row);
    if (column.is_missing(in_data)) continue;
    const double value = column.number(in_data);
    range = range ? std::pair(std::min(range->first, value), std::max(range->second, value)) : std::pair(value, value);
  }
  return range ? fmt::format("{:g} to {:g}", range->first, range->second) : "no values";
}

// Views of the cells, which live as long as the table: a column of text may be as large as its file.
std::string shown_categories(const Table& table, const TableColumn& column) {
  std::unordered_set<std::string_view> categories;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const std::int64_t in_data = table.data_row(row);
    if (!column.is_missing(in_data)) categories.insert(column.texts[in_data]);
  }
  return fmt::format("{} different values", categories.size());
}

}  // namespace

std::string Table::summary() const {
  std::string text = fmt::format("{} rows, {} columns\n", rows(), data_->columns.size());
  for (const TableColumn& column : data_->columns) {
    const std::int64_t without = missing(column.name);
    text += fmt::format("  {:24} {:8} {}{}\n", shown_text(column.name, 60), to_string(column.type),
                        column.type == ColumnType::text ? shown_categories(*this, column) : shown_range(*this, column),
                        without == 0 ? "" : fmt::format(", {} missing", without));
  }
  return text;
}

}  // namespace holdfast
