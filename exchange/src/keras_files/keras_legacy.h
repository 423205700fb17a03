#pragma once

// The HDF5 files of Keras 1 and 2, which Keras 3 still reads and writes: a group for each direct layer of the model,
// listed in the attribute "layer_names", with the layer's variables, listed in its attribute "weight_names". A
// whole-model file has them in a group "model_weights" and the model's configuration in an attribute.

#include "keras_files/keras_content.h"

namespace holdfast::format {

inline constexpr const char* kModelWeights = "model_weights";
inline constexpr const char* kOptimizerWeights = "optimizer_weights";
inline constexpr const char* kTopLevelWeights = "top_level_model_weights";

// Of the group that holds the layers' groups: "" or "model_weights".
bool is_legacy_weights(const Hdf5Tree& tree, const std::string& root);

// The optimizer that the attribute "training_config" of a whole-model file describes, as far as it does.
KerasOptimizer legacy_optimizer(const Hdf5Tree& tree, const std::string& label);

// Adds the tree's arrays, paths and groups to `content`. `model` may be null; `label` names the file in errors.
void read_keras_legacy(Hdf5Tree& tree, const std::string& root, const KerasModel* model,
                       const KerasOptimizer& optimizer, const std::string& label, KerasContent& content);

// A variable's name of old as its path inside its layer: "net/dense_1/kernel:0" in layer "dense_1" -> "kernel".
std::string legacy_variable(const std::string& layer, const std::string& weight);

// The variable that a weight is, by its last part: "net/dense_1/kernel:0" -> "kernel".
std::string legacy_variable_name(std::string_view weight);
// True where they mean the same, which Keras's versions call differently.
bool is_same_variable(std::string_view found, std::string_view expected);
// "dense_1_1" -> "dense_1": TensorFlow 1 numbered a name that was taken.
std::string_view without_number(std::string_view name);

// The paths of all groups of layers, with their weights' names, as a legacy file lists them.
struct LegacyLayer {
  std::string name;
  std::vector<std::string> weights;
};
std::vector<LegacyLayer> legacy_layers(const Hdf5Tree& tree, const std::string& root, const std::string& label);

}  // namespace holdfast::format
