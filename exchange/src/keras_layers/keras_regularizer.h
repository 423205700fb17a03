#pragma once

// Regularizers: in Holdfast one text, "l2(0.01)"; in Keras an object, a word or null.

#include <optional>
#include <string>
#include <string_view>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// Holdfast's text for a regularizer of Keras, not for null. Missing for one that Holdfast does not have.
std::optional<std::string> regularizer_of_keras(const Json& value);

// Keras's object for a regularizer of Holdfast; missing for another text.
std::optional<Json> keras_regularizer(std::string_view text);

}  // namespace holdfast::format
