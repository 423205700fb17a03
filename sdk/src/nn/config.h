#pragma once

// The configuration of a layer as JSON, written in a fixed order and read with suspicion: text from outside may hold
// anything.

#include <nlohmann/json.hpp>
#include <string_view>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigWriter {
 public:
  void boolean(std::string_view key, bool value) { object_[std::string(key)] = value; }
  void integer(std::string_view key, std::int64_t value) { object_[std::string(key)] = value; }
  void number(std::string_view key, float value);
  void text(std::string_view key, std::string_view value) { object_[std::string(key)] = value; }
  void extent(std::string_view key, Extent2D value) { object_[std::string(key)] = {value.height, value.width}; }

  const nlohmann::ordered_json& object() const { return object_; }

 private:
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

// Keys in no order: the sorted kind is what a text of a million keys does not slow down. Each function throws
// Error{invalid_file} naming the key where it is missing or its value of another kind. Whether the value makes sense is
// the reader's business.
class ConfigReader {
 public:
  // `place` begins sentences of errors: "layer 3". Throws unless `object` is an object, which must outlive the reader.
  ConfigReader(const nlohmann::json& object, std::string place);

  bool boolean(std::string_view key);
  std::int64_t integer(std::string_view key);
  float number(std::string_view key);
  std::string text(std::string_view key);
  Extent2D extent(std::string_view key);
  std::vector<std::int64_t> integers(std::string_view key);
  const nlohmann::json& value(std::string_view key);

  // Throws Error{invalid_file} when the object holds more than was read: what a reader passes over silently, it gets
  // wrong.
  void finish() const;

 private:
  [[noreturn]] void reject(std::string_view key, std::string_view needed) const;
  std::int64_t as_integer(std::string_view key, const nlohmann::json& json) const;

  const nlohmann::json& object_;
  const std::string place_;
  std::size_t keys_read_ = 0;
};

}  // namespace holdfast
