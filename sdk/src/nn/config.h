#pragma once

// The configuration of a layer as JSON. It is written in a fixed order. The reader trusts nothing,
// since the text may come from outside.

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigWriter {
 public:
  void boolean(std::string_view key, bool value) { object_[std::string(key)] = value; }
  void integer(std::string_view key, std::int64_t value) { object_[std::string(key)] = value; }
  void number(std::string_view key, float value);
  void text(std::string_view key, std::string_view value) { object_[std::string(key)] = value; }
  void extent(std::string_view key, Extent2D value) { object_[std::string(key)] = {value.height, value.width}; }

  void integers(std::string_view key, const std::vector<std::int64_t>& values) { object_[std::string(key)] = values; }
  // A missing number is null.
  void numbers(std::string_view key, const std::vector<std::optional<float>>& values);

  const nlohmann::ordered_json& object() const { return object_; }

 private:
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

// Each function throws Error{invalid_file} that names the key if the value is missing or of another
// type. Whether a value makes sense is checked by the layer. The order of keys does not matter: the
// object is a sorted one, which stays fast with a million keys.
class ConfigReader {
 public:
  // `place` begins the sentence of an error: "layer 3". Throws unless `object` is an object; it must
  // outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string place);

  bool boolean(std::string_view key);
  std::int64_t integer(std::string_view key);
  float number(std::string_view key);
  std::string text(std::string_view key);
  Extent2D extent(std::string_view key);
  std::vector<std::int64_t> integers(std::string_view key);
  std::vector<std::optional<float>> numbers(std::string_view key);
  const nlohmann::json& value(std::string_view key);

  // Throws Error{invalid_file} if the object holds more than was read: what a reader skips, it
  // misunderstands.
  void finish() const;

 private:
  [[noreturn]] void reject(std::string_view key, std::string_view needed) const;
  float as_number(std::string_view key, const nlohmann::json& json) const;
  std::int64_t as_integer(std::string_view key, const nlohmann::json& json) const;

  const nlohmann::json& object_;
  const std::string place_;
  std::size_t keys_read_ = 0;
};

}  // namespace holdfast
