#pragma once

// Means as JSON, for savepoints and results.json. JSON has no NaN and no infinities, so these are the texts "nan",
// "inf" and "-inf". The readers throw Error{invalid_file} with what is wrong ("it has null where a number belongs");
// the caller adds the file.

#include <nlohmann/json.hpp>

#include "holdfast/train/callback.h"

namespace holdfast {

nlohmann::json number_json(double value);
double number_from(const nlohmann::json& value);

nlohmann::json logs_json(const Logs& logs);
Logs logs_from(const nlohmann::json& object);

}  // namespace holdfast
