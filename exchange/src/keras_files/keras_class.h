#pragma once

// The names of the variables in Keras's classes of layers.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// Converts "MultiHeadAttention" to "multi_head_attention", as Keras does for the names of groups in a weights file.
std::string keras_snake_case(std::string_view class_name);

struct KerasVariable {
  std::string name;
  bool is_trainable = true;
};

// Returns the variables that a layer of this class and configuration owns, in Keras's order (trainable ones first),
// without those of its children. Empty for an unknown class.
std::optional<std::vector<KerasVariable>> keras_variables(std::string_view class_name, const Json& config);

// Returns the names of `count` variables of a layer in the group `snake_name` ("dense_1", "cell"). Empty where they
// cannot be known without the layer's configuration.
std::vector<std::string> guess_keras_variables(std::string_view snake_name, std::size_t count);

}  // namespace holdfast::format
