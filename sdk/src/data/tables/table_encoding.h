#pragma once

// What a TableEncoder holds: for each column, how its cells become numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/data/table_encoder.h"

namespace holdfast {

enum class EncodingKind {
  number,
  one_hot,  // one number for each category
  id,       // an integer; of a target, a class
};

struct ColumnEncoding {
  std::string column;
  EncodingKind kind = EncodingKind::number;

  // A number becomes (value - mean) / deviation.
  double mean = 0;
  double deviation = 1;  // above 0
  std::optional<double> filled_number = {};

  // A category has these.
  std::vector<std::string> categories = {};
  bool has_other = false;
  std::optional<std::string> filled_category = {};
  std::unordered_map<std::string, std::int64_t> positions = {};  // of the categories

  // How many features the column becomes. Ids are inputs of their own.
  std::int64_t width() const {
    if (kind == EncodingKind::id) return 0;
    return kind == EncodingKind::number ? 1 : static_cast<std::int64_t>(categories.size());
  }
  // With the id 0 of "other", all ids of categories move up.
  std::int64_t first_id() const { return has_other ? 1 : 0; }
  std::int64_t ids() const { return first_id() + static_cast<std::int64_t>(categories.size()); }
  // Fills `positions`. Throws Error{invalid_file} if a category is there twice.
  void index_categories();
};

struct TableEncoding {
  std::vector<ColumnEncoding> features;
  std::vector<ColumnEncoding> targets;  // numbers, or one id

  std::int64_t width() const;
  bool has_ids() const;
  bool has_class_target() const { return targets[0].kind == EncodingKind::id; }
};

}  // namespace holdfast
