#pragma once

// The configuration of a layer as JSON. It is written in a fixed order. The reader trusts nothing,
// since the text may come from outside.

#include <nlohmann/json.hpp>

#include "holdfast/nn/layer_config.h"

namespace holdfast {

// All of its functions throw Error{invalid_argument} for a key that was written before.
class JsonConfigWriter final : public ConfigWriter {
 public:
  void boolean(std::string_view key, bool value) override { member(key) = value; }
  void integer(std::string_view key, std::int64_t value) override { member(key) = value; }
  // Floats are written with the fewest digits that give the same float again. A missing number of a list is null.
  // Throws Error{invalid_argument} for numbers that are not finite.
  void number(std::string_view key, float value) override;
  // Throws Error{invalid_argument} for a text that is not UTF-8.
  void text(std::string_view key, std::string_view value) override;
  void extent(std::string_view key, Extent2D value) override { member(key) = {value.height, value.width}; }
  void integers(std::string_view key, const std::vector<std::int64_t>& values) override { member(key) = values; }
  void numbers(std::string_view key, const std::vector<std::optional<float>>& values) override;

  // All that was written, in the order of the calls.
  const nlohmann::ordered_json& object() const { return object_; }

 private:
  nlohmann::ordered_json& member(std::string_view key);

  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

// The order of keys does not matter: the object is a sorted one, which stays fast with a million keys.
class JsonConfigReader final : public ConfigReader {
 public:
  // `place` begins the sentence of an error: "layer 3". Throws Error{invalid_file} unless `object` is an object; it
  // must outlive the reader.
  JsonConfigReader(const nlohmann::json& object, std::string place);

  // Each key may be read once. All of these throw Error{invalid_file} for a missing key or a value of another type or
  // range.
  bool boolean(std::string_view key) override;
  std::int64_t integer(std::string_view key) override;
  float number(std::string_view key) override;
  std::string text(std::string_view key) override;
  Extent2D extent(std::string_view key) override;
  std::vector<std::int64_t> integers(std::string_view key) override;
  std::vector<std::optional<float>> numbers(std::string_view key) override;
  bool has(std::string_view key) const override { return object_.contains(std::string(key)); }
  // The member itself, for texts that hold more than options.
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
