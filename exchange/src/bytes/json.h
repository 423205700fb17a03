#pragma once

// The JSON type for files of other frameworks.

#include <nlohmann/json.hpp>

namespace holdfast::format {

using Json = nlohmann::json;

}  // namespace holdfast::format
