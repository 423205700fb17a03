#pragma once

// The layers of a Keras model, derived from its configuration: their names, the paths of their variables in the HDF5
// files, and their order.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_class.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

// A layer, or a part of one that has variables of its own.
struct KerasLayer {
  std::string class_name;
  std::string array_path;    // "encoder/lstm/cell": layers of a model by their own names, parts by their attribute
  std::string weights_path;  // in a weights file: "layers/functional/layers/lstm/cell"
  bool is_trainable = true;  // it and everything that it is part of
  bool is_known = false;     // its class is known, so `variables` is complete
  std::string data_format;   // "channels_first", "channels_last", or empty
  std::vector<KerasVariable> variables;
  std::vector<KerasLayer> children;  // in the order of Keras's list of variables
};

struct KerasSlot {
  std::string array;         // "encoder/lstm/cell/kernel"
  std::string variable;      // "kernel"
  std::string weights_path;  // "layers/functional/layers/lstm/cell/vars/0"
  bool is_trainable;
};

class KerasModel {
 public:
  // `config` is {"class_name": ..., "config": ...} of a Sequential or functional model; a model of any other class
  // has no layers. `label` names it in errors. Throws Error{invalid_file} for a configuration that no Keras writes.
  KerasModel(const Json& config, const std::string& label);
  KerasModel(const KerasModel&) = delete;
  KerasModel& operator=(const KerasModel&) = delete;

  // The direct layers of the model, in its order. Like Keras, a Sequential lists no input layers.
  const std::vector<KerasLayer>& layers() const { return root_.children; }
  // False if a class is unknown, so that slots() may be incomplete.
  bool is_complete() const { return is_complete_; }
  // All variables, in Keras's order.
  const std::vector<KerasSlot>& slots() const { return slots_; }
  // The same in the order in which legacy files list a model that is a layer: trainable ones first.
  std::vector<KerasSlot> legacy_slots() const;
  // Returns the layer whose group in a weights file has this path, or null.
  const KerasLayer* find(std::string_view weights_path) const;

 private:
  void index(const KerasLayer& layer);

  KerasLayer root_;
  bool is_complete_ = true;
  std::vector<KerasSlot> slots_;
  std::map<std::string, const KerasLayer*, std::less<>> layers_by_path_;
};

// The variables of one layer and its children in the order of legacy files: trainable ones first.
std::vector<KerasSlot> legacy_slots(const KerasLayer& layer);

// The list of layers in a model's configuration; null if it is not a Sequential or functional model.
const Json& layers_of_config(const Json& config);
// A layer's own name; may be empty.
std::string layer_name(const Json& layer);
bool is_sequential(const Json& config);

}  // namespace holdfast::format
