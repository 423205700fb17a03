#pragma once

// Constraints: in Holdfast one text, "max_norm(2,[0,1])"; in Keras an object, a word or null.

#include <optional>
#include <string>
#include <string_view>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// Holdfast's text for a constraint of Keras, not for null. Missing for one that Holdfast does not have.
std::optional<std::string> constraint_of_keras(const Json& value);

// Keras's object for a constraint of Holdfast; missing for another text.
std::optional<Json> keras_constraint(std::string_view text);

}  // namespace holdfast::format
