#pragma once

// Activations: in Holdfast one text, "relu" or "elu(0.5)"; in Keras a name, a layer, or a function of keras.ops.

#include <optional>
#include <string>
#include <string_view>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// Holdfast's text for the option `activation` of a Keras layer: a name, or an object of a layer or a function. Missing
// for what Holdfast does not have.
std::optional<std::string> activation_of_keras(const Json& value);

// The same for a function of keras.ops and its options: "Elu", {"alpha": 0.5}.
std::optional<std::string> activation_of_keras_function(std::string_view class_name, const Json& config);

// Keras's name for an activation of Holdfast. Missing for one that Keras has as a layer or a function alone.
std::optional<std::string> keras_activation_name(std::string_view text);

struct KerasActivation {
  const char* module;  // "keras.layers" for a layer
  std::string class_name;
  Json config;
};
// Missing for a text that does not name an activation with numbers, and for numbers that Keras does not accept.
std::optional<KerasActivation> keras_activation_object(std::string_view text);

}  // namespace holdfast::format
