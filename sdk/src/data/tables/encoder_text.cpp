// An encoder as JSON. A text may come from anywhere, so each member is checked as the constructor of an encoder would:
// one that was read can be applied without another look at it. See docs/decisions/tables.md.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/json_text.h"
#include "data/tables/table_encoding.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Both stand in the files of users. Another meaning of any member needs another version.
constexpr const char* kEncoderFormat = "holdfast table encoder";
constexpr int kEncoderVersion = 1;

Error damaged_encoder(const std::string& reason) {
  return Error(
      ErrorCode::invalid_file,
      fmt::format("the text is not that of a table encoder: {}; take one that TableEncoder::text() wrote", reason));
}

std::string_view name_of(EncodingKind kind) {
  switch (kind) {
    case EncodingKind::number:
      return "number";
    case EncodingKind::one_hot:
      return "one_hot";
    default:
      return "id";
  }
}

// In a fixed order, because equal encoders have equal texts. The library prints a double by the shortest digits that
// give the same bits, so an encoder that is read again computes the same features.
OrderedJson json_of_column(const ColumnEncoding& encoding) {
  OrderedJson json = {{"column", encoding.column}, {"kind", name_of(encoding.kind)}};
  if (encoding.kind == EncodingKind::number) {
    json["mean"] = encoding.mean;
    json["deviation"] = encoding.deviation;
    if (encoding.filled_number) json["fill"] = *encoding.filled_number;
  } else {
    json["categories"] = encoding.categories;
    json["other"] = encoding.has_other;
    if (encoding.filled_category) json["fill"] = *encoding.filled_category;
  }
  return json;
}

// The members of one JSON object, each of which must be there and have its type.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {
    if (!json.is_object()) throw damaged_encoder("it holds a value where an object is needed");
  }

  const Json& operator[](const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) throw damaged_encoder(fmt::format("member \"{}\" is missing", name));
    return *found;
  }
  bool has(const char* name) const { return json_.contains(name); }

  std::string text(const char* name) const { return text_of((*this)[name], name); }
  double number(const char* name) const {
    const Json& member = (*this)[name];
    if (!member.is_number() || !std::isfinite(member.get<double>())) {
      throw damaged_encoder(fmt::format("member \"{}\" is not a finite number", name));
    }
    return member.get<double>();
  }
  bool boolean(const char* name) const {
    const Json& member = (*this)[name];
    if (!member.is_boolean()) throw damaged_encoder(fmt::format("member \"{}\" is neither true nor false", name));
    return member.get<bool>();
  }
  // None of the lists may be empty: an encoder has a feature, a target, and a category in each column of categories.
  const Json& list(const char* name) const {
    const Json& member = (*this)[name];
    if (!member.is_array() || member.empty()) {
      throw damaged_encoder(fmt::format("member \"{}\" is not a list of one or more", name));
    }
    return member;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> texts;
    for (const Json& entry : list(name)) texts.push_back(text_of(entry, name));
    return texts;
  }

 private:
  static std::string text_of(const Json& json, const char* name) {
    // The parser has refused bytes that are not UTF-8. A text may still hold a NUL, which names and cells never do.
    if (!json.is_string() || !is_utf8(json.get_ref<const std::string&>())) {
      throw damaged_encoder(fmt::format("member \"{}\" holds something else than text", name));
    }
    return json.get<std::string>();
  }

  const Json& json_;
};

ColumnEncoding column_from_json(const Json& json) {
  const Members members(json);
  ColumnEncoding encoding{.column = members.text("column")};
  const std::string kind = members.text("kind");
  if (kind == "number") {
    encoding.mean = members.number("mean");
    encoding.deviation = members.number("deviation");
    // Numbers are divided by it, so 0 would make each of them infinite or NaN.
    if (!(encoding.deviation > 0)) throw damaged_encoder("a deviation is not above 0");
    if (members.has("fill")) encoding.filled_number = members.number("fill");
    return encoding;
  }
  if (kind != "one_hot" && kind != "id")
    throw damaged_encoder(fmt::format("the kind {} is unknown", quoted_text(kind)));
  encoding.kind = kind == "id" ? EncodingKind::id : EncodingKind::one_hot;
  encoding.categories = members.texts("categories");
  encoding.has_other = members.boolean("other");
  // Throws for a category that is there twice, of which one would never be used.
  encoding.index_categories();
  // A fill that is not a category would be refused at the first cell without a value, long after this.
  if (members.has("fill")) {
    encoding.filled_category = members.text("fill");
    if (!encoding.positions.contains(*encoding.filled_category)) {
      throw damaged_encoder("the fill of a column is not one of its categories");
    }
  }
  return encoding;
}

// `names` is shared by features and targets: no column is both.
std::vector<ColumnEncoding> columns_from_json(const Json& list, std::set<std::string>& names) {
  std::vector<ColumnEncoding> columns;
  for (const Json& entry : list) {
    columns.push_back(column_from_json(entry));
    if (!names.insert(columns.back().column).second) {
      throw damaged_encoder(fmt::format("column {} is there twice", quoted_text(columns.back().column)));
    }
  }
  return columns;
}

// What fit() gives: one class without "other", which no model has an output for, or any number of numbers.
void check_kinds(const TableEncoding& encoding) {
  for (const ColumnEncoding& target : encoding.targets) {
    const bool is_class = target.kind == EncodingKind::id && encoding.targets.size() == 1 && !target.has_other;
    if (!is_class && target.kind != EncodingKind::number) {
      throw damaged_encoder(fmt::format("target {} is neither a number nor a class", quoted_text(target.column)));
    }
  }
}

}  // namespace

std::string TableEncoder::text() const {
  OrderedJson json = {{"format", kEncoderFormat}, {"version", kEncoderVersion}};
  // The order of the columns is that of the features in a sample.
  for (const auto& [name, columns] : {std::pair{"features", &encoding_->features}, {"targets", &encoding_->targets}}) {
    OrderedJson list = OrderedJson::array();
    for (const ColumnEncoding& column : *columns) list.push_back(json_of_column(column));
    json[name] = std::move(list);
  }
  return json.dump();
}

TableEncoder TableEncoder::from_text(std::string_view text) {
  if (is_deep_json(text)) throw damaged_encoder("its lists are nested more than a thousand levels deep");
  // Without exceptions: a text that is not JSON gives a discarded value. The depth was checked before, because the
  // library copies values by recursion.
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw damaged_encoder("it is not JSON");
  const Members members(json);
  if (members.text("format") != kEncoderFormat) throw damaged_encoder("member \"format\" names another format");
  // Before all other members, which may mean something else in another version.
  const double version = members.number("version");
  if (version != kEncoderVersion) {
    throw damaged_encoder(
        fmt::format("it has version {}, where this library reads version {}", version, kEncoderVersion));
  }
  TableEncoding encoding;
  std::set<std::string> names;
  encoding.features = columns_from_json(members.list("features"), names);
  encoding.targets = columns_from_json(members.list("targets"), names);
  check_kinds(encoding);
  return TableEncoder(std::make_shared<const TableEncoding>(std::move(encoding)));
}

}  // namespace holdfast
