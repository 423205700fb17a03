// Applies an encoder. Numbers are computed in double and rounded to f32 once. All columns are found before the first
// number is computed, so a wrong table costs no memory. See docs/decisions/tables.md.

#include "holdfast/data/table_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/stages/range_stage.h"
#include "data/tables/encoder_file.h"
#include "data/tables/nearest_name.h"
#include "data/tables/table_data.h"
#include "data/tables/table_encoding.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

Error refused_encoding(const std::string& sentence) {
  return Error(ErrorCode::invalid_argument, sentence);
}

// One column of a table, with what its cells become. The column is found once. The table and the encoding must outlive
// this object; both belong to the caller of the functions below.
class EncodedColumn {
 public:
  EncodedColumn(const Table& table, const ColumnEncoding& encoding)
      : table_(table), encoding_(encoding), cells_(table.data().columns[table.data().index_of(encoding.column)]) {
    // A column of another type is refused as a whole, before the first row is computed.
    if (encoding_.kind == EncodingKind::number) require_numbers(table_.data(), cells_);
  }

  const ColumnEncoding& encoding() const { return encoding_; }

  float number(std::int64_t row) const {
    const std::int64_t in_data = table_.data_row(row);
    const bool is_missing = cells_.is_missing(in_data);
    if (is_missing && !encoding_.filled_number) throw without_value(row);
    const double value = is_missing ? *encoding_.filled_number : cells_.number(in_data);
    // In double until here: the difference of two large floats would have few digits left.
    const auto result = static_cast<float>((value - encoding_.mean) / encoding_.deviation);
    // What is finite in double may not be so in f32, and would spoil the loss of a whole batch.
    if (std::isfinite(result)) return result;
    throw refused_encoding(
        fmt::format("{}: the value {} of column {} does not fit into a 32-bit float; scale the column",
                    table_.place(row), value, quoted_text(encoding_.column)));
  }

  // The number of the category, or -1 for one that is not known.
  std::int64_t category(std::int64_t row) const {
    const std::int64_t in_data = table_.data_row(row);
    std::string text;
    if (cells_.is_missing(in_data)) {
      if (!encoding_.filled_category) throw without_value(row);
      text = *encoding_.filled_category;
    } else if (cells_.type == ColumnType::real) {
      throw refused_encoding(
          fmt::format("column {} is one of reals, but the encoder knows it as categories; declare it "
                      "as text in CsvOptions::types",
                      quoted_text(encoding_.column)));
    } else {
      text = category_of(cells_, in_data);
    }
    const auto found = encoding_.positions.find(text);
    if (found != encoding_.positions.end()) return found->second;
    if (encoding_.has_other) return -1;
    throw refused_encoding(fmt::format(
        "{}: column {} has the category {}, which is not one of the {} that the encoder was fitted to; fit "
        "it to rows that have it, or use UnknownCategory::other",
        table_.place(row), quoted_text(encoding_.column), quoted_text(text, 40), encoding_.categories.size()));
  }

  // Id 0 is that of "other" if there is one, and then that of category i is i + 1.
  std::int64_t id(std::int64_t row) const {
    const std::int64_t found = category(row);
    return found < 0 ? 0 : found + encoding_.first_id();
  }

 private:
  Error without_value(std::int64_t row) const {
    return refused_encoding(
        fmt::format("{}: column {} has no value; give it one by the option `fill` of TableEncoder, "
                    "or leave such rows out by Table::without_missing()",
                    table_.place(row), quoted_text(encoding_.column)));
  }

  const Table& table_;
  const ColumnEncoding& encoding_;
  const TableColumn& cells_;
};

std::vector<EncodedColumn> encoded_columns(const Table& table, const std::vector<ColumnEncoding>& encodings) {
  // A data set of no samples would fail much later, in fit().
  if (table.rows() == 0) throw refused_encoding("the table has no rows to make samples of");
  std::vector<EncodedColumn> columns;
  columns.reserve(encodings.size());
  for (const ColumnEncoding& encoding : encodings) columns.emplace_back(table, encoding);
  return columns;
}

// Writes one row; ids leave no trace here.
// Features are zeros before. A category that is not known leaves them so, as UnknownCategory::other promises.
void write_features(const std::vector<EncodedColumn>& columns, std::int64_t row, std::span<float> features) {
  std::size_t next = 0;
  for (const EncodedColumn& column : columns) {
    switch (column.encoding().kind) {
      case EncodingKind::number:
        features[next] = column.number(row);
        break;
      case EncodingKind::one_hot: {
        const std::int64_t category = column.category(row);
        if (category >= 0) features[next + static_cast<std::size_t>(category)] = 1;
        break;
      }
      case EncodingKind::id:
        break;
    }
    next += static_cast<std::size_t>(column.encoding().width());
  }
}

// Numbers and one-hot categories are one array, which comes first. Each column of ids is an input of its own, since an
// Embedding takes integers.
std::vector<NamedTensor> named_inputs(const Table& table, const TableEncoding& encoding) {
  const std::vector<EncodedColumn> columns = encoded_columns(table, encoding.features);
  std::vector<NamedTensor> inputs;
  if (encoding.width() > 0) {
    Tensor features(Shape{table.rows(), encoding.width()});
    for (std::int64_t row = 0; row < table.rows(); ++row) write_features(columns, row, features.sample(row));
    inputs.push_back({.name = "features", .tensor = std::move(features)});
  }
  for (const EncodedColumn& column : columns) {
    if (column.encoding().kind != EncodingKind::id) continue;
    std::vector<std::int32_t> ids;
    for (std::int64_t row = 0; row < table.rows(); ++row) ids.push_back(static_cast<std::int32_t>(column.id(row)));
    inputs.push_back({.name = column.encoding().column, .tensor = Tensor(Shape{table.rows(), 1}, ids)});
  }
  return inputs;
}

// Classes have the shape [] a sample, for the sparse losses, and numbers [columns].
Tensor target_tensor(const Table& table, const TableEncoding& encoding) {
  const std::vector<EncodedColumn> columns = encoded_columns(table, encoding.targets);
  if (encoding.has_class_target()) {
    Tensor classes(Shape{table.rows()});
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      classes.sample(row)[0] = static_cast<float>(columns[0].id(row));
    }
    return classes;
  }
  // Only numbers are left as targets here, so each column is one element wide.
  Tensor targets(Shape{table.rows(), static_cast<std::int64_t>(columns.size())});
  for (std::int64_t row = 0; row < table.rows(); ++row) write_features(columns, row, targets.sample(row));
  return targets;
}

}  // namespace

// The next position is the number of categories so far, so positions follow the order of the list.
void ColumnEncoding::index_categories() {
  for (const std::string& category : categories) {
    if (positions.emplace(category, static_cast<std::int64_t>(positions.size())).second) continue;
    throw Error(ErrorCode::invalid_file, fmt::format("column {} of an encoder has the category {} twice",
                                                     quoted_text(column), quoted_text(category, 40)));
  }
}

std::int64_t TableEncoding::width() const {
  std::int64_t sum = 0;
  for (const ColumnEncoding& feature : features) sum += feature.width();
  return sum;
}

bool TableEncoding::has_ids() const {
  return std::ranges::any_of(features, [](const ColumnEncoding& each) { return each.kind == EncodingKind::id; });
}

namespace {

// What stays of a table once its cells are numbers: where its rows come from. A Table would keep the memory of all
// cells.
class RowPlaces {
 public:
  explicit RowPlaces(const Table& table) {
    const TableData& data = table.data();
    places_.path = data.path;
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      const std::int64_t in_data = table.data_row(row);
      if (data.lines.empty()) {
        rows_.push_back(in_data);
      } else {
        places_.lines.push_back(data.lines[static_cast<std::size_t>(in_data)]);
      }
    }
  }

  std::string place(std::int64_t row) const {
    return places_.place(rows_.empty() ? row : rows_[static_cast<std::size_t>(row)]);
  }

 private:
  TableData places_;                // without columns
  std::vector<std::int64_t> rows_;  // of a file without lines: rows of the file
};

// All samples of a table. The stage changes no sample. It says from which row of the table each one came.
class TableRowsStage final : public Stage {
 public:
  // It has the number, the source and the description of the stage before, so that it changes no bit.
  TableRowsStage(std::shared_ptr<const Stage> before, const Table& table)
      : Stage(before->layouts(), before->size(), before->number()), before_(std::move(before)), places_(table) {
    // A table that skipped nothing is not kept: it would hold the memory of all its cells.
    if (table.skipped_rows().count > 0) with_skipped_ = table;
  }

  std::vector<const Stage*> parents() const override { return {before_.get()}; }
  const Stage* source() const override { return before_->source(); }
  // This stage and not the source, because place() is asked of the origin.
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return {this, before_->source_position(seed, epoch, position)};
  }
  std::string place(std::int64_t position) const override { return places_.place(position); }
  StageKind kind() const override { return StageKind::range; }
  const SkippedSamples* skipped() const override { return with_skipped_ ? &with_skipped_->skipped_rows() : nullptr; }
  void describe(nlohmann::ordered_json& stages) const override { before_->describe(stages); }
  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override {
    before_->load(seed, epoch, position, destination);
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override {
    before_->load_targets(seed, epoch, position, targets);
  }

 private:
  std::shared_ptr<const Stage> before_;
  RowPlaces places_;
  std::optional<Table> with_skipped_;  // the parts of a table share what was left out of its file, so it counts once
};

Dataset with_places(const Dataset& samples, const Table& table) {
  return Dataset(std::make_shared<TableRowsStage>(samples.last_stage(), table));
}

}  // namespace

Dataset TableEncoder::dataset(const Table& table) const {
  std::vector<NamedTensor> inputs = named_inputs(table, *encoding_);
  Tensor targets = target_tensor(table, *encoding_);
  // One array of f32 for both keeps the plain source, whose arrays can be pinned as they are.
  if (!encoding_->has_ids()) {
    return with_places(from_tensors(std::move(inputs[0].tensor), std::move(targets)), table);
  }
  std::vector<NamedTensor> outputs;
  // A single target has the name of its column. Several share one array, to which none of their names belongs.
  outputs.push_back({.name = encoding_->targets.size() == 1 ? encoding_->targets[0].column : "targets",
                     .tensor = std::move(targets)});
  return with_places(from_tensors(std::move(inputs), std::move(outputs)), table);
}

Tensor TableEncoder::features(const Table& table) const {
  // Without ids there is one input, and it has all features.
  if (encoding_->has_ids()) throw refused_encoding("the encoder makes several inputs; ask inputs() for all of them");
  return std::move(named_inputs(table, *encoding_)[0].tensor);
}

std::vector<Tensor> TableEncoder::inputs(const Table& table) const {
  std::vector<Tensor> tensors;
  for (NamedTensor& input : named_inputs(table, *encoding_)) tensors.push_back(std::move(input.tensor));
  return tensors;
}

std::int64_t TableEncoder::features() const {
  return encoding_->width();
}

// In the order in which write_features() writes them; ids are not among them.
std::vector<std::string> TableEncoder::feature_names() const {
  std::vector<std::string> names;
  for (const ColumnEncoding& feature : encoding_->features) {
    if (feature.kind == EncodingKind::number) names.push_back(feature.column);
    if (feature.kind != EncodingKind::one_hot) continue;
    for (const std::string& category : feature.categories)
      names.push_back(fmt::format("{}={}", feature.column, category));
  }
  return names;
}

namespace {

// No column is a feature and a target, so the first one of this name is the only one.
const ColumnEncoding& encoding_of(const TableEncoding& encoding, std::string_view column) {
  std::vector<std::string> names;
  for (const std::vector<ColumnEncoding>* columns : {&encoding.features, &encoding.targets}) {
    for (const ColumnEncoding& each : *columns) {
      if (each.column == column) return each;
      names.push_back(each.column);
    }
  }
  throw refused_encoding(fmt::format("the encoder has no column {}; the nearest name is {}", quoted_text(column),
                                     quoted_text(nearest_name(column, names))));
}

}  // namespace

std::vector<std::string> TableEncoder::categories(std::string_view column) const {
  const ColumnEncoding& found = encoding_of(*encoding_, column);
  if (found.kind != EncodingKind::number) return found.categories;
  throw refused_encoding(
      fmt::format("column {} is one of numbers for the encoder, and has no categories", quoted_text(column)));
}

std::int64_t TableEncoder::ids(std::string_view column) const {
  const ColumnEncoding& found = encoding_of(*encoding_, column);
  if (found.kind == EncodingKind::id) return found.ids();
  throw refused_encoding(fmt::format("column {} has no ids; name it in the option `ids`", quoted_text(column)));
}

Tensor TableEncoder::to_target_units(Tensor outputs) const {
  if (encoding_->has_class_target()) {
    throw refused_encoding("the target of the encoder has classes, which have no units; see categories()");
  }
  const auto columns = static_cast<std::int64_t>(encoding_->targets.size());
  if (outputs.shape().rank() != 2 || outputs.shape()[1] != columns) {
    throw refused_encoding(fmt::format("to_target_units() takes outputs of shape [samples, {}], not {}", columns,
                                       outputs.shape().to_string()));
  }
  std::size_t column = 0;
  // Row-major, so the columns come in turns. Computed in double as the way there was.
  for (float& output : outputs.values()) {
    const ColumnEncoding& target = encoding_->targets[column];
    output = static_cast<float>(output * target.deviation + target.mean);
    column = (column + 1) % encoding_->targets.size();
  }
  return outputs;
}

void TableEncoder::save(const std::string& path) const {
  save_encoder(*this, path);
}

TableEncoder TableEncoder::load(const std::string& path) {
  return load_encoder<TableEncoder>(path);
}

}  // namespace holdfast
