#pragma once

// Turns tables into samples. It is fitted to the rows for training alone: means, deviations and vocabularies come from
// them. Then it is applied to any rows, also to those of a later prediction.
//
//   const auto [train, test] = read_csv("houses.csv").split(0.2, {.seed = 1});
//   const TableEncoder encoder = TableEncoder::fit(train, {.targets = {"price"}, .fill = {{"age", Fill::mean()}}});
//   const Dataset data = encoder.dataset(train);       // features [encoder.features()], targets [1]
//   encoder.save("run/encoder.json");                  // for the program that predicts
//
// A column of numbers becomes its distance from the mean in deviations: (value - mean) / deviation, with the
// population's deviation. Where that is 0, the column is constant in training, and it is divided by 1: the feature is 0
// there. A column of text is one of categories. It becomes one number for each category, 1 for that of the row and 0
// for the others. Categories are in the order of their bytes, and integers in that of their values.
//
// An encoder is a value: cheap to copy, and safe to use from several threads.

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "holdfast/core/tensor.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/table.h"

namespace holdfast {

struct TableEncoding;

// What stands in for a cell without a value.
class Fill {
 public:
  // The mean of the column in the rows for training. For numbers only.
  static Fill mean() { return Fill(Mean{}); }
  // A number, or for a column of categories a text: {{"rooms", 0}, {"town", "unknown"}}.
  template <typename Number>
  requires std::is_arithmetic_v<Number> Fill(Number number) : value_(static_cast<double>(number)) {}
  Fill(const char* category) : value_(std::string(category)) {}
  Fill(std::string category) : value_(std::move(category)) {}

  // For Holdfast's own use.
  struct Mean {};
  // What the constructors were given.
  const std::variant<Mean, double, std::string>& value() const { return value_; }

 private:
  explicit Fill(Mean) : value_(Mean{}) {}

  std::variant<Mean, double, std::string> value_;
};

// What becomes of a category that the rows for training did not have.
enum class UnknownCategory {
  refuse,  // an error that names the row
  other,   // all numbers of the category are 0; among ids, "other" has id 0 for its own and the rest begin at 1
};

struct TableEncoderOptions {
  // Columns of numbers, or one column of categories, whose classes are counted from 0.
  std::vector<std::string> targets;
  // Empty: all columns that are not targets.
  std::vector<std::string> features = {};
  // Columns of integers that are categories, as text is; and of text that fit() would take for numbers with mistakes.
  std::vector<std::string> categories = {};
  // Categories that become integers in an input of their own, for an Embedding, rather than one number each.
  std::vector<std::string> ids = {};
  bool normalize = true;                              // the features; otherwise numbers stay as they are
  bool normalize_targets = false;                     // those of numbers; to_target_units() turns outputs back
  UnknownCategory unknown = UnknownCategory::refuse;  // see UnknownCategory
  // What stands for a cell without a value, by column. A cell without a value and without an entry here is an error
  // that names the row.
  std::map<std::string, Fill> fill = {};
  // A column with more categories is refused, unless it is among `ids`: it is likely a name or a number of articles.
  std::int64_t max_one_hot = 1000;
};

class TableEncoder {
 public:
  // Throws Error{invalid_argument} for a table without rows, for names that are not columns (with the nearest one), for
  // a column that is feature and target, for a column without values, for fills that are not of the column's type, for
  // normalize_targets with a target of categories, and for a column of read_csv() that is text because of a few cells:
  // at least 10 values, of which 9 of 10 or more are numbers. The error names the line of the first other one; name the
  // column in `categories` or `ids`, or declare it in CsvOptions::types, where it is meant so.
  static TableEncoder fit(const Table& training, const TableEncoderOptions& options);

  // Samples with the rows of the table in their order. Features are one f32 array [features()]. Columns among `ids` are
  // further inputs of i32 [1], named as the column, in their order; the first input is then called "features", and it
  // is left out if there are no other columns. Targets are f32 [columns], and of categories a class for each sample,
  // of shape [], for the sparse losses. The description holds digests of the numbers, as that of from_tensors().
  //
  // Throws Error{invalid_argument} that names row and column for a table without rows, a column that is absent, a cell
  // without a value or fill, a category that is not known, and a number that does not fit into f32.
  Dataset dataset(const Table& table) const;
  // The inputs alone, for predict(); the table needs no targets. Throw as dataset() does, and features() if there are
  // columns among `ids`.
  Tensor features(const Table& table) const;             // [rows, features()]
  std::vector<Tensor> inputs(const Table& table) const;  // in the order of the data set

  // The number of features, for Input{encoder.features()}, and what each of them is: "area", "town=Bonn".
  std::int64_t features() const;
  std::vector<std::string> feature_names() const;  // one for each feature
  // The categories of a feature or a target, in the order of their numbers. For a target, those of the classes. Throws
  // Error{invalid_argument} for a column that has none.
  std::vector<std::string> categories(std::string_view column) const;
  // For Embedding{encoder.ids("town"), 8}: the number of ids, that of "other" included.
  std::int64_t ids(std::string_view column) const;
  // Outputs of a model [n, targets] in the units of the targets: undoes normalize_targets. Throws
  // Error{invalid_argument} for another shape, and for targets of categories.
  Tensor to_target_units(Tensor outputs) const;

  // The encoder as JSON. Equal encoders have equal texts, and an encoder of the text gives the same bits.
  std::string text() const;
  // Throws Error{invalid_file} for a text that is not one of text().
  static TableEncoder from_text(std::string_view text);
  // The same in a file, which is replaced in one step. Throw as the file system does; the first error of load() names
  // the file.
  void save(const std::string& path) const;
  // The encoder that save() wrote.
  static TableEncoder load(const std::string& path);

 private:
  explicit TableEncoder(std::shared_ptr<const TableEncoding> encoding) : encoding_(std::move(encoding)) {}

  std::shared_ptr<const TableEncoding> encoding_;
};

}  // namespace holdfast
