#pragma once

// The forms of Keras files, which keras.h reads and writes.

#include <string_view>

namespace holdfast::format {

// The forms in which Keras saves a model or its weights.
enum class KerasForm {
  weights,         // *.weights.h5
  archive,         // *.keras
  legacy_weights,  // *.h5, weights alone
  legacy_model,    // *.h5, with the model's configuration
};

// "weights", "archive", "legacy_weights", "legacy_model".
std::string_view name(KerasForm form);
// Throws Error{invalid_argument} for any other name.
KerasForm keras_form_from_name(std::string_view name);

}  // namespace holdfast::format
