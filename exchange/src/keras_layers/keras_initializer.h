#pragma once

// Initializers: in Holdfast one text, "he_uniform" or "normal(0.05)"; in Keras a name or an object.

#include <optional>
#include <string>
#include <string_view>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// Holdfast's text for an initializer of Keras. Missing for one that Holdfast does not have.
std::optional<std::string> initializer_of_keras(const Json& value);

// Keras's form of an initializer of Holdfast. A list of values, which Keras does not have, becomes zeros: the weights
// of a file replace whatever an initializer gives.
Json keras_initializer(std::string_view text);

}  // namespace holdfast::format
