#pragma once

// De-replication: Keras 1 and 2 ran a model on several GPUs by wrapping it in another (multi_gpu_model): inputs, a
// Lambda for each GPU and input that cuts out its part of the batch, the base model shared by all, and a Concatenate
// for each output. Saving such a model saved the wrapper, and training it again wrapped it once more. Here the wrappers
// are taken off a file's tree. What a Lambda would do is not looked at.

#include <cstddef>
#include <string>

#include "foreign_hdf5/tree.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

// Turns the tree of a legacy file into its base model's, as if that had been saved: the layers' groups below `root`
// and, where there is one, the configuration. Returns how many wrappers there were; one at most can be told where the
// file has no configuration (`config` is null). Throws Error{unsupported} where the base model's layers cannot be told
// apart.
std::size_t unwrap_replicas(Hdf5Tree& tree, const std::string& root, Json& config, const std::string& label);

}  // namespace holdfast::format
