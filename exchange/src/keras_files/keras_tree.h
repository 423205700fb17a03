#pragma once

// Reads Keras's HDF5 files from trees.

#include <string>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// True if the tree holds Keras's weights in any form.
bool is_keras_tree(const Hdf5Tree& tree);

// Returns what read_keras returns; `path` is used in errors.
ArraySet read_keras_tree(Hdf5Tree tree, const std::string& path);

}  // namespace holdfast::format
