#pragma once

// The HDF5 weights of Keras 3. Each object with variables has a group, reached by classes of layers and names of
// attributes. Its group "vars" holds the variables "0", "1", ...

#include "keras_files/keras_content.h"

namespace holdfast::format {

// True if the tree has any group "vars".
bool is_keras_weights(const Hdf5Tree& tree);

// Adds the tree's arrays, paths and groups to `content`. `model` may be null.
void read_keras_weights(Hdf5Tree& tree, const KerasModel* model, const KerasOptimizer& optimizer,
                        KerasContent& content);

}  // namespace holdfast::format
