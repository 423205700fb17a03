#pragma once

// Converts content from one form of Keras file to another.

#include "keras_files/keras_content.h"

namespace holdfast::format {

// Lays out `content` as `form`. Its arrays must be named by its configuration, and `optimizer` must list its arrays
// in Keras's order. Throws Error{unsupported} for a model whose layers are not all known.
KerasContent lay_out(KerasContent content, KerasForm form);

// The same for content that was read from a file. Keeps the file's own paths where both forms have them.
KerasContent convert(KerasContent content, KerasForm form);

}  // namespace holdfast::format
