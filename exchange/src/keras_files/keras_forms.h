#pragma once

// The same arrays in another form of Keras file.

#include "keras_files/keras_content.h"

namespace holdfast::format {

// A content whose arrays are named by `config`, and `optimizer`, which lists its arrays in Keras's order, laid out as
// `form`. Takes the bytes of `content`. Throws Error{unsupported} for a model whose layers are not all known.
KerasContent lay_out(KerasContent content, KerasForm form);

// The same for what was read from a file, by its own paths where the two forms have the same.
KerasContent convert(KerasContent content, KerasForm form);

}  // namespace holdfast::format
