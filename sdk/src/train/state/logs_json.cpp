#include "train/state/logs_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "holdfast/base/error.h"

namespace holdfast {

nlohmann::json number_json(double value) {
  // JSON has no such numbers, and the library would write null for each of them.
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// The text is quoted, so that a sentence about "inf " shows the blank.
double number_from(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return infinity;
  if (value == "-inf") return -infinity;
  const std::string what = value.is_string() ? fmt::format("\"{}\"", value.get<std::string>()) : value.type_name();
  throw Error(ErrorCode::invalid_file, fmt::format("it has {} where a number belongs", what));
}

// Logs are sorted by name, so equal logs have equal texts.
nlohmann::json logs_json(const Logs& logs) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : logs) object[name] = number_json(value);
  return object;
}

// An empty object is valid: a fit() may end before its first step.
Logs logs_from(const nlohmann::json& object) {
  if (!object.is_object()) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("it has {} where an object with means belongs", object.type_name()));
  }
  Logs logs;
  for (const auto& [name, value] : object.items()) logs[name] = number_from(value);
  return logs;
}

}  // namespace holdfast
