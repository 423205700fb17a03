#pragma once

// Removes replication from legacy Keras files. Keras 1 and 2 ran a model on several GPUs by wrapping it in another
// one (multi_gpu_model): inputs, a Lambda for each GPU and input that cuts out its part of the batch, the shared base
// model, and a Concatenate for each output. Saving such a model saved the wrapper, and training it again added
// another wrapper. The code of a Lambda is never looked at.

#include <cstddef>
#include <string>

#include "foreign_hdf5/tree.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

// Turns the tree of a legacy file into that of its base model: the layers' groups below `root` and, unless it is
// null, the configuration. Returns the number of wrappers. Without a configuration at most one wrapper can be
// recognised. Throws Error{unsupported} if the weights cannot be assigned to the base model's layers.
std::size_t unwrap_replicas(Hdf5Tree& tree, const std::string& root, Json& config, const std::string& label);

}  // namespace holdfast::format
