#pragma once

// Drawings of models that have layers of an application.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace holdfast::cli {

// Text for Graphviz, as Model::drawing() writes it, made of a savepoint's "graph" alone: this program links no layers
// of applications. Shapes are missing. Empty for a graph of Holdfast's layers, and for a text that is not a graph.
std::optional<std::string> drawing_of_own_layers(const nlohmann::ordered_json& graph);

}  // namespace holdfast::cli
