#pragma once

// Means as JSON, for savepoints and results.json. JSON has no NaN and no infinities, so these are the texts "nan",
// "inf" and "-inf". The readers throw Error{invalid_file} with what is wrong ("it has null where a number belongs");
// the caller adds the file.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/train/callback.h"

namespace holdfast {

inline nlohmann::json number_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

inline double number_from(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return infinity;
  if (value == "-inf") return -infinity;
  throw Error(ErrorCode::invalid_file,
              fmt::format("it has {} where a number belongs",
                          value.is_string() ? "\"" + value.get<std::string>() + "\"" : value.type_name()));
}

inline nlohmann::json logs_json(const Logs& logs) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : logs) object[name] = number_json(value);
  return object;
}

inline Logs logs_from(const nlohmann::json& object) {
  if (!object.is_object()) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("it has {} where an object with means belongs", object.type_name()));
  }
  Logs logs;
  for (const auto& [name, value] : object.items()) logs[name] = number_from(value);
  return logs;
}

}  // namespace holdfast
