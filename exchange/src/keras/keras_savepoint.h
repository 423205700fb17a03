#pragma once

// Conversion between Keras's arrays and a Holdfast savepoint's.

#include "keras_files/keras_content.h"

namespace holdfast::format {

// Returns a savepoint's arrays as a Keras model's, named by its configuration, ready for lay_out. `metadata` is the
// savepoint's, parsed. State of an optimizer that Keras lacks is left out.
KerasContent keras_from_savepoint(const ArraySet& savepoint, const Json& metadata);

// keras_to_savepoint, with metadata that is already parsed.
ArraySet savepoint_from_keras(const ArraySet& keras, const KerasDescription& description, const ArraySet& like,
                              const Json& like_metadata);

}  // namespace holdfast::format
