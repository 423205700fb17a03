// Fits an encoder. Sums are taken in double and in the order of the rows, and categories are sorted, so equal tables
// give equal encoders. A deviation is computed from distances to the mean: the difference of two large sums of squares
// would be noise for numbers such as years. See docs/decisions/tables.md.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "data/tables/nearest_name.h"
#include "data/tables/table_data.h"
#include "data/tables/table_encoding.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

Error refused_fit(const std::string& sentence) {
  return Error(ErrorCode::invalid_argument, fmt::format("TableEncoder::fit(): {}", sentence));
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The features and targets of the options, which become columns of the encoder.
struct EncodedNames {
  std::vector<std::string> features;
  const std::vector<std::string>& targets;

  EncodedNames(const Table& table, const TableEncoderOptions& options)
      : features(options.features), targets(options.targets) {
    // All other columns, in the order of the table: that is the order of the features in a sample.
    if (features.empty()) {
      for (const std::string& column : table.columns()) {
        if (!contains(targets, column)) features.push_back(column);
      }
    }
    if (targets.empty()) throw refused_fit("name at least one column in `targets`");
    if (features.empty()) throw refused_fit("all columns are targets, and none is left for features");
    std::set<std::string> used;
    for (const std::string& name : all()) {
      // For its error alone, which names the nearest column.
      table.type(name);
      if (used.insert(name).second) continue;
      throw refused_fit(
          fmt::format("column {} is named twice among features and targets; a target that is also a "
                      "feature would be learned from itself",
                      quoted_text(name)));
    }
  }

  // Throws unless `name` is one of the columns. An option that has no effect hides a misspelt name.
  void require(const std::string& name, const char* option) const {
    if (contains(features, name) || contains(targets, name)) return;
    throw refused_fit(fmt::format("`{}` names {}, which is neither a feature nor a target; the nearest name is {}",
                                  option, quoted_text(name), quoted_text(nearest_name(name, all()))));
  }

  std::vector<std::string> all() const {
    std::vector<std::string> names = features;
    names.insert(names.end(), targets.begin(), targets.end());
    return names;
  }
};

// Fits one column to the rows of a table.
class ColumnFit {
 public:
  // `table` and `options` must outlive this object, which is used for one call of feature() or target().
  ColumnFit(const Table& table, const TableEncoderOptions& options, const std::string& column)
      : table_(table), options_(options), cells_(table.data().columns[table.data().index_of(column)]) {
    result_.column = column;
    const auto fill = options.fill.find(column);
    if (fill != options.fill.end()) fill_ = &fill->second;
  }

  ColumnEncoding feature() {
    const bool is_id = contains(options_.ids, result_.column);
    if (is_id || is_category()) return category(is_id ? EncodingKind::id : EncodingKind::one_hot, options_.unknown);
    return number(options_.normalize);
  }

  // Targets that are categories become classes, counted from 0, and never several numbers: that is what the sparse
  // losses take.
  ColumnEncoding target() {
    if (contains(options_.ids, result_.column)) {
      throw refused_fit(fmt::format("`ids` names {}, a target; a target of categories has classes as it is",
                                    quoted_text(result_.column)));
    }
    if (!is_category()) return number(options_.normalize_targets);
    if (options_.normalize_targets) {
      throw refused_fit(fmt::format(
          "`normalize_targets` is for targets of numbers, and column {} is one of categories, {}; "
          "correct the column, add a text that stands for no value to CsvOptions::missing, or leave out "
          "the option",
          quoted_text(result_.column),
          cells_.type == ColumnType::text ? reason_of_text(table_.data(), cells_) : "as `categories` says"));
    }
    // A model has no class for an unknown category.
    return category(EncodingKind::id, UnknownCategory::refuse);
  }

 private:
  bool is_category() const {
    if (contains(options_.categories, result_.column)) return true;
    if (cells_.type != ColumnType::text) return false;
    // One wrong cell must not make a feature or a class of each number.
    if (is_mostly_of_numbers(cells_)) throw mostly_of_numbers();
    return true;
  }

  Error mostly_of_numbers() const {
    return refused_fit(
        fmt::format("column {} is text, {}, but {} of its {} values are numbers; correct the cell, add its text to "
                    "CsvOptions::missing if it stands for no value, or name the column in `categories` if it has some",
                    quoted_text(result_.column), reason_of_text(table_.data(), cells_), cells_.numbers, cells_.values));
  }

  // Rows of this table alone, in their order. Its columns may hold rows of another part of a split, and a mean over
  // those would tell the model of validation.
  template <typename Function>
  void for_each_value(const Function& function) const {
    for (std::int64_t row = 0; row < table_.rows(); ++row) {
      const std::int64_t in_data = table_.data_row(row);
      if (!cells_.is_missing(in_data)) function(in_data);
    }
  }

  // Mean and deviation are computed even if they are not used: a column without values, or with numbers whose squares
  // are infinite, is refused either way, and a fill by the mean needs it.
  ColumnEncoding number(bool is_normalized) {
    const auto [mean, deviation] = mean_and_deviation();
    if (is_normalized) {
      result_.mean = mean;
      // A constant column becomes 0 and stays harmless. An epsilon instead would
      // make millions of the first other value.
      result_.deviation = deviation > 0 ? deviation : 1;
    }
    if (fill_ != nullptr) {
      if (std::holds_alternative<std::string>(fill_->value())) {
        throw refused_fit(
            fmt::format("`fill` gives column {} a text, but it is one of numbers; give a number, or name "
                        "the column in `categories`",
                        quoted_text(result_.column)));
      }
      const double* given = std::get_if<double>(&fill_->value());
      result_.filled_number = given != nullptr ? *given : mean;
      if (!std::isfinite(*result_.filled_number)) {
        throw refused_fit(
            fmt::format("`fill` gives column {} a number that is not finite", quoted_text(result_.column)));
      }
    }
    return std::move(result_);
  }

  // Two passes, see the top of this file. The deviation is that of the population, as documented: divided by `count`.
  std::pair<double, double> mean_and_deviation() const {
    double count = 0;
    double sum = 0;
    for_each_value([&](std::int64_t row) {
      ++count;
      sum += cells_.number(row);
    });
    if (count == 0) throw without_values();
    const double mean = sum / count;
    double squares = 0;
    for_each_value([&](std::int64_t row) {
      const double distance = cells_.number(row) - mean;
      squares += distance * distance;
    });
    const double deviation = std::sqrt(squares / count);
    // Cells are finite, so this is an overflow: of the sum, which makes the mean infinite, or of the squares.
    if (!std::isfinite(deviation)) {
      throw refused_fit(fmt::format("the squares of column {} exceed 64-bit floats; scale it, or leave it out",
                                    quoted_text(result_.column)));
    }
    return {mean, deviation};
  }

  Error without_values() const {
    return refused_fit(fmt::format("column {} has no value in any of the {} rows; leave it out of the features",
                                   quoted_text(result_.column), table_.rows()));
  }

  // Reals are refused even where the column is named in `categories`: 0.1 has no text that is surely that of the file,
  // so the categories of two files would not match.
  ColumnEncoding category(EncodingKind kind, UnknownCategory unknown) {
    if (cells_.type == ColumnType::real) {
      throw refused_fit(
          fmt::format("column {} is one of reals, which cannot be categories; declare it as text in "
                      "CsvOptions::types",
                      quoted_text(result_.column)));
    }
    result_.kind = kind;
    result_.has_other = unknown == UnknownCategory::other;
    result_.categories = sorted_categories();
    if (fill_ != nullptr) add_fill();
    if (result_.categories.empty()) throw without_values();
    // Ids have the width 0, so the limit is for columns of one number a category.
    if (result_.width() > options_.max_one_hot) {
      throw refused_fit(
          fmt::format("column {} has {} categories, more than max_one_hot ({}); leave it out of the "
                      "features, name it in `ids` for an Embedding, or raise the limit",
                      quoted_text(result_.column), result_.categories.size(), options_.max_one_hot));
    }
    // Samples are f32, which tells whole numbers apart up to 2^24.
    constexpr std::size_t kMost = std::size_t{1} << 24;
    if (result_.categories.size() > kMost) {
      throw refused_fit(fmt::format("column {} has {} categories, more than the 2^24 that 32-bit floats tell apart",
                                    quoted_text(result_.column), result_.categories.size()));
    }
    result_.index_categories();
    return std::move(result_);
  }

  // Integers are sorted as numbers: "10" comes after "9". Texts are sorted by their bytes, whatever the locale. A
  // sorted order is what makes equal tables give equal encoders, whatever the order of their rows.
  std::vector<std::string> sorted_categories() const {
    std::vector<std::string> sorted;
    if (cells_.type == ColumnType::integer) {
      std::set<std::int64_t> values;
      for_each_value([&](std::int64_t row) { values.insert(cells_.integers[static_cast<std::size_t>(row)]); });
      for (const std::int64_t value : values) sorted.push_back(std::to_string(value));
    } else {
      std::set<std::string_view> values;
      for_each_value([&](std::int64_t row) { values.insert(cells_.texts[row]); });
      sorted.assign(values.begin(), values.end());
    }
    return sorted;
  }

  // It is a category even if no row for training needs it, so that the encoder does not depend on that.
  void add_fill() {
    const std::string* given = std::get_if<std::string>(&fill_->value());
    if (given == nullptr) {
      throw refused_fit(fmt::format("`fill` gives column {} a number, but it is one of categories; give a text",
                                    quoted_text(result_.column)));
    }
    result_.filled_category = *given;
    if (!contains(result_.categories, *given)) result_.categories.push_back(*given);
  }

  const Table& table_;
  const TableEncoderOptions& options_;
  const TableColumn& cells_;
  const Fill* fill_ = nullptr;
  ColumnEncoding result_;
};

// Targets are one tensor of f32 in a data set of a table, and a class among numbers would be trained on as a number.
void check_targets(const TableEncoding& encoding) {
  if (encoding.targets.size() == 1) return;
  for (const ColumnEncoding& target : encoding.targets) {
    if (target.kind == EncodingKind::number) continue;
    throw refused_fit(
        fmt::format("column {} is a target of categories, which can only be the one target; make a data "
                    "set of several targets by from_tensors()",
                    quoted_text(target.column)));
  }
}

}  // namespace

TableEncoder TableEncoder::fit(const Table& training, const TableEncoderOptions& options) {
  if (training.rows() == 0) throw refused_fit("the table has no rows");
  const EncodedNames names(training, options);
  for (const std::string& name : options.categories) names.require(name, "categories");
  for (const std::string& name : options.ids) names.require(name, "ids");
  for (const auto& [name, fill] : options.fill) names.require(name, "fill");
  TableEncoding encoding;
  for (const std::string& name : names.features) {
    // Options that name no column were refused above, so each of them has an effect from here on.
    encoding.features.push_back(ColumnFit(training, options, name).feature());
  }
  for (const std::string& name : names.targets) {
    encoding.targets.push_back(ColumnFit(training, options, name).target());
  }
  check_targets(encoding);
  return TableEncoder(std::make_shared<const TableEncoding>(std::move(encoding)));
}

}  // namespace holdfast
