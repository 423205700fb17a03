// Written by hand, since a JSON library sorts members or spells floats as doubles. The text is compared with that of
// earlier versions.

#include "core/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/json_text.h"

namespace holdfast {

JsonObject::JsonObject(std::string_view kind) : members_("\"kind\":" + json_string(kind)) {}

JsonObject& JsonObject::append(std::string_view members) {
  if (!members_.empty() && !members.empty()) members_ += ',';
  members_ += members;
  return *this;
}

JsonObject& JsonObject::value(std::string_view key, std::string_view json) {
  return append(fmt::format("{}:{}", json_string(key), json));
}

JsonObject& JsonObject::texts(std::string_view key, std::span<const std::string> values) {
  std::vector<std::string> texts;
  for (const std::string& value : values) texts.push_back(json_string(value));
  return value(key, fmt::format("[{}]", fmt::join(texts, ",")));
}

JsonObject& JsonObject::boolean(std::string_view key, bool value) {
  return this->value(key, value ? "true" : "false");
}

JsonObject& JsonObject::integer(std::string_view key, std::int64_t value) {
  return this->value(key, std::to_string(value));
}

JsonObject& JsonObject::integers(std::string_view key, std::span<const std::int64_t> values) {
  return value(key, fmt::format("[{}]", fmt::join(values, ",")));
}

JsonObject& JsonObject::number(std::string_view key, float value) {
  return this->value(key, json_number(value));
}

// A number that was not given is null and not absent, so each kind of object always has the same members.
JsonObject& JsonObject::number_or_null(std::string_view key, std::optional<float> value) {
  return this->value(key, value ? json_number(*value) : "null");
}

JsonObject& JsonObject::numbers(std::string_view key, std::span<const float> values) {
  std::vector<std::string> texts;
  for (const float value : values) texts.push_back(json_number(value));
  return value(key, fmt::format("[{}]", fmt::join(texts, ",")));
}

}  // namespace holdfast
