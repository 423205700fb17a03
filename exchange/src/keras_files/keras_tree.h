#pragma once

// Keras's HDF5 files, once they are trees.

#include <string>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Whether Keras's weights are in it, of any form.
bool is_keras_tree(const Hdf5Tree& tree);

// As read_keras; `path` is named in errors.
ArraySet read_keras_tree(Hdf5Tree tree, const std::string& path);

}  // namespace holdfast::format
