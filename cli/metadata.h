#pragma once

// Reads the metadata of a file, sums it up, and compares it.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/format/exchange/any_file.h"

namespace holdfast::cli {

// The metadata as JSON; null when it is not JSON. Values nested deeper than a hundred levels are left out, since the
// JSON library visits values by recursion.
nlohmann::ordered_json parse_metadata(const std::string& text);

// Pairs of name and text that sum up the kind of the file, the state of its training and the program that made it.
std::vector<std::pair<std::string, std::string>> summarise_metadata(const format::AnyFile& file);

// A layer of the model in a file's metadata.
struct LayerRow {
  std::string name;
  std::string kind;
  std::string inputs;  // the layers and inputs of the model that it is called on: "stem, relu"; "; " between calls
};
// The layers of a Sequential or a Model, in order. Empty if the metadata has no such graph. What is wrong in a graph is
// left out or shown as "?".
std::vector<LayerRow> model_layers(const nlohmann::ordered_json& metadata);

// A line for each key that only one side has or whose values differ: "only in A: step", "step: 3 in A, 4 in B". Nested
// values are compared one by one: "configuration/optimizer/kind: ...", "graph/layers/0/name: ...". The order of keys
// does not matter.
std::vector<std::string> metadata_differences(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

}  // namespace holdfast::cli
