// Layers write their options as JSON into savepoints, and savepoints come from outside. So a reader
// checks the type and range of each value, and refuses members that nobody read: what it skipped it
// would misunderstand.

#include "nn/graph/config.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/utf8.h"

namespace holdfast {

namespace {

using Json = nlohmann::json;

}  // namespace

// As a double, 0.99F is 0.9900000095367432. The double nearest to the float's shortest text reads back
// as the same float and is what the user wrote. A text that rounds another way through double keeps all
// digits.
static double shortest_double(float value) {
  const std::string shortest = json_number(value);
  double number = 0;
  std::from_chars(shortest.data(), shortest.data() + shortest.size(), number);
  return static_cast<float>(number) == value ? number : static_cast<double>(value);
}

static double finite_double(std::string_view key, float value) {
  if (std::isfinite(value)) return shortest_double(value);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("its option \"{}\" is {}, which no text of a model can hold; give a finite number", key, value));
}

// A file would keep the last of two values of one key, without a message.
nlohmann::ordered_json& JsonConfigWriter::member(std::string_view key) {
  const auto [found, is_new] = object_.emplace(std::string(key), nullptr);
  if (is_new) return found.value();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("its write_config() writes \"{}\" twice; give each option a key of its own", key));
}

void JsonConfigWriter::number(std::string_view key, float value) {
  member(key) = finite_double(key, value);
}

void JsonConfigWriter::text(std::string_view key, std::string_view value) {
  if (!is_utf8(value)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its option \"{}\" is a text of other bytes than UTF-8; write it as UTF-8", key));
  }
  member(key) = value;
}

void JsonConfigWriter::numbers(std::string_view key, const std::vector<std::optional<float>>& values) {
  // A list may have gaps, such as the arguments of an operation that are values. JSON's null marks them.
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::optional<float>& value : values) {
    list.push_back(value ? nlohmann::ordered_json(finite_double(key, *value)) : nlohmann::ordered_json());
  }
  member(key) = std::move(list);
}

JsonConfigReader::JsonConfigReader(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
  if (!object.is_object()) {
    throw Error(ErrorCode::invalid_file, fmt::format("{} of the model graph is not a JSON object", place_));
  }
}

void JsonConfigReader::reject(std::string_view key, std::string_view needed) const {
  throw Error(ErrorCode::invalid_file, fmt::format("{} of the model graph needs \"{}\", {}", place_, key, needed));
}

const Json& JsonConfigReader::value(std::string_view key) {
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) reject(key, "which is missing");
  // Readers ask for each key once, so a count is enough to tell finish() whether a member was left unread.
  ++keys_read_;
  return *found;
}

bool JsonConfigReader::boolean(std::string_view key) {
  const Json& json = value(key);
  if (!json.is_boolean()) reject(key, "true or false");
  return json.get<bool>();
}

std::int64_t JsonConfigReader::as_integer(std::string_view key, const Json& json) const {
  // The JSON library reads integers up to 2^64, and its get() would turn those above 2^63 into negative ones.
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_too_large = json.is_number_unsigned() && json.get<std::uint64_t>() > kLargest;
  if (!json.is_number_integer() || is_too_large) reject(key, "an integer of 64 bits, or a list of them");
  return json.get<std::int64_t>();
}

std::int64_t JsonConfigReader::integer(std::string_view key) {
  return as_integer(key, value(key));
}

float JsonConfigReader::as_number(std::string_view key, const Json& json) const {
  // A larger double would become an infinity as a float, and no option is infinite.
  if (!json.is_number() || std::abs(json.get<double>()) > std::numeric_limits<float>::max()) {
    reject(key, "a number in the range of 32-bit floats");
  }
  return json.get<float>();
}

float JsonConfigReader::number(std::string_view key) {
  return as_number(key, value(key));
}

std::vector<std::optional<float>> JsonConfigReader::numbers(std::string_view key) {
  const Json& json = value(key);
  if (!json.is_array()) reject(key, "a list of numbers");
  std::vector<std::optional<float>> numbers;
  for (const Json& element : json) {
    numbers.push_back(element.is_null() ? std::nullopt : std::optional(as_number(key, element)));
  }
  return numbers;
}

std::string JsonConfigReader::text(std::string_view key) {
  const Json& json = value(key);
  if (!json.is_string()) reject(key, "a text");
  return json.get<std::string>();
}

std::vector<std::int64_t> JsonConfigReader::integers(std::string_view key) {
  const Json& json = value(key);
  if (!json.is_array()) reject(key, "a list of integers");
  std::vector<std::int64_t> integers;
  for (const Json& element : json) integers.push_back(as_integer(key, element));
  return integers;
}

Extent2D JsonConfigReader::extent(std::string_view key) {
  // The height comes first, as in JsonConfigWriter::extent().
  const std::vector<std::int64_t> extents = integers(key);
  if (extents.size() != 2) reject(key, "a list of two integers");
  return {extents[0], extents[1]};
}

void JsonConfigReader::finish() const {
  // A member that this version does not know may change what the known ones mean, so that the file is refused.
  if (keys_read_ == object_.size()) return;
  throw Error(ErrorCode::invalid_file, fmt::format("{} of the model graph holds {} values, of which only {} are known",
                                                   place_, object_.size(), keys_read_));
}

}  // namespace holdfast
