#pragma once

// What Keras calls the variables of its classes of layers.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// "MultiHeadAttention" -> "multi_head_attention", as Keras forms the names of groups in a weights file.
std::string keras_snake_case(std::string_view class_name);

struct KerasVariable {
  std::string name;
  bool is_trainable = true;
};

// The variables that a layer of this class and configuration has itself, in Keras's order (trainable ones first), none
// of its children's. Nothing for a class that is not known.
std::optional<std::vector<KerasVariable>> keras_variables(std::string_view class_name, const Json& config);

// The names of `count` variables of a layer in the group `snake_name` ("dense_1", "cell"); empty where they cannot be
// told without the layer's configuration.
std::vector<std::string> guess_keras_variables(std::string_view snake_name, std::size_t count);

}  // namespace holdfast::format
