#pragma once

// Names for the layers that were given none, as Keras chooses them.

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct LayerName {
  std::string given;  // empty if the model shall choose one
  std::string kind;   // "Dense"
};

// Throws Error{invalid_argument} unless the name has 1 to 100 letters, digits and characters of "_-." and does not
// begin with a dot.
void check_layer_name(std::string_view name);
// The same for each part of a layer's name that stands after the names of the models around it: "encoder/dense".
void check_layer_path(std::string_view path);
// Throws Error{invalid_argument} unless each part of the name of a layer's weight, "kernel" or "cell/kernel", is such a
// name: savepoints hold it.
void check_weight_name(std::string_view name);
// The same if one of these names is also the beginning of another one, "n/kernel" and "n/kernel/kernel": no file of
// groups can hold both.
void check_weight_paths(const std::vector<std::string>& names);

// One name for each layer: its own, or its kind in snake_case, with a number from the second one on:
// "conv2d", "conv2d_1". Names that another layer has are skipped. Throws Error{invalid_argument} if two
// layers were given the same name.
std::vector<std::string> name_layers(const std::vector<LayerName>& layers);

// Whether name_layers() may choose this name for a layer of this kind.
bool is_automatic_name(std::string_view name, std::string_view kind);

// The names that somebody who wrote `wanted` may have meant, the closest first: those that differ in few characters,
// and paths that begin or end with it. At most three.
std::vector<std::string> close_names(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace holdfast
