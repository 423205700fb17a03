#pragma once

// Writes one JSON object as text, member by member in the order of the calls. Configurations of optimizers and
// learning rates are written with it. They stand in savepoints and are compared as text, so the same values must always
// give the same bytes, and the order and the spelling of numbers never change.
//
//   JsonObject("sgd").number("momentum", 0.9F).boolean("nesterov", false).text()
//   {"kind":"sgd","momentum":0.9,"nesterov":false}
//
// A base class may write the object while derived classes write some of its members:
//
//   JsonObject(kind).append(JsonObject().integer("k", 5).members()).value("name", json_string(name)).text()

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

class JsonObject {
 public:
  JsonObject() = default;
  // Begins with the member "kind".
  explicit JsonObject(std::string_view kind);

  JsonObject& boolean(std::string_view key, bool value);
  JsonObject& integer(std::string_view key, std::int64_t value);
  JsonObject& integers(std::string_view key, std::span<const std::int64_t> values);
  // Numbers as json_number() spells them. Asserts that they are finite.
  JsonObject& number(std::string_view key, float value);
  JsonObject& number_or_null(std::string_view key, std::optional<float> value);
  JsonObject& numbers(std::string_view key, std::span<const float> values);
  // `json` is the text of any JSON value, which is not checked.
  JsonObject& value(std::string_view key, std::string_view json);
  JsonObject& texts(std::string_view key, std::span<const std::string> values);

  // Appends the members() of another object, which may have none.
  JsonObject& append(std::string_view members);

  // The whole object. More members may follow.
  std::string text() const { return "{" + members_ + "}"; }
  // What stands between its braces.
  const std::string& members() const { return members_; }

 private:
  std::string members_;
};

}  // namespace holdfast
