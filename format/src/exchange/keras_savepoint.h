#pragma once

// Between Keras's arrays and a Holdfast savepoint's.

#include "exchange/keras_content.h"

namespace holdfast::format {

// A savepoint's arrays as a Keras model's, named by its configuration, ready for lay_out. `metadata` is the
// savepoint's, parsed. An optimizer's state that Keras has no place for is left out.
KerasContent keras_from_savepoint(const ArraySet& savepoint, const Json& metadata);

}  // namespace holdfast::format
