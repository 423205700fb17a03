#pragma once

// What differs between two JSON values, leaf by leaf, so that a sentence can name an option and not a whole model.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace holdfast {

struct JsonDifference {
  std::string path;    // "training/optimizer/learning_rate", which begins with the given name
  std::string first;   // as JSON, or "not set"
  std::string second;  // likewise
};

// In the order of the paths; empty for equal values.
std::vector<JsonDifference> differences_of(const std::string& name, const nlohmann::json& first,
                                           const nlohmann::json& second);

}  // namespace holdfast
