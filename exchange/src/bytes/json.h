#pragma once

// JSON as the files of other frameworks have it.

#include <nlohmann/json.hpp>

namespace holdfast::format {

using Json = nlohmann::json;

}  // namespace holdfast::format
