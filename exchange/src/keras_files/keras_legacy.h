#pragma once

// The HDF5 files of Keras 1 and 2, which Keras 3 still reads and writes. Each direct layer of the model has a group,
// listed in the attribute "layer_names". The layer's variables are in this group, listed in its attribute
// "weight_names". A whole-model file has all of this in a group "model_weights", and the model's configuration in an
// attribute.

#include "keras_files/keras_content.h"

namespace holdfast::format {

inline constexpr const char* kModelWeights = "model_weights";
inline constexpr const char* kOptimizerWeights = "optimizer_weights";
inline constexpr const char* kTopLevelWeights = "top_level_model_weights";

// True if `root` ("" or "model_weights") holds the layers' groups.
bool is_legacy_weights(const Hdf5Tree& tree, const std::string& root);

// The optimizer that the attribute "training_config" of a whole-model file describes, as far as it does.
KerasOptimizer legacy_optimizer(const Hdf5Tree& tree, const std::string& label);

// Adds the tree's arrays, paths and groups to `content`. `model` may be null; `label` names the file in errors.
void read_keras_legacy(Hdf5Tree& tree, const std::string& root, const KerasModel* model,
                       const KerasOptimizer& optimizer, const std::string& label, KerasContent& content);

// Turns a legacy variable name into a path inside its layer: "net/dense_1/kernel:0" in layer "dense_1" becomes
// "kernel".
std::string legacy_variable(const std::string& layer, const std::string& weight);

// Returns the variable's name, the last part of a weight's name: "net/dense_1/kernel:0" becomes "kernel".
std::string legacy_variable_name(std::string_view weight);
// True if both names mean the same variable in different versions of Keras.
bool is_same_variable(std::string_view found, std::string_view expected);
// "dense_1_1" becomes "dense_1": TensorFlow 1 added a number to a name that was in use.
std::string_view without_number(std::string_view name);

// The groups of all layers with the names of their weights, as a legacy file lists them.
struct LegacyLayer {
  std::string name;
  std::vector<std::string> weights;
};
std::vector<LegacyLayer> legacy_layers(const Hdf5Tree& tree, const std::string& root, const std::string& label);

}  // namespace holdfast::format
