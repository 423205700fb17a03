#pragma once

// What a file's metadata says, for people.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/format/exchange/any_file.h"

namespace holdfast::cli {

// The metadata as JSON. What is nested deeper than a hundred levels is left out, since the JSON library goes through
// values by recursion.
nlohmann::ordered_json parse_metadata(const std::string& text);

// Lines "name, text" that sum up what kind of file this is, where its training stood and what made it.
std::vector<std::pair<std::string, std::string>> summarise_metadata(const format::AnyFile& file);

// A line for each key that only one side has or whose values differ: "only in A: step", "step: 3 in A, 4 in B". What
// lies within is compared piece by piece: "configuration/optimizer/kind: ...", "graph/layers/0/name: ...". The order of
// keys does not matter.
std::vector<std::string> metadata_differences(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

}  // namespace holdfast::cli
