#pragma once

// The layers of a Keras model as its configuration tells them: how each is called, where the HDF5 files keep its
// variables, and in which order.

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
  bool is_trainable = true;  // it and all that it is part of
  bool is_known = false;     // its class is, so that `variables` are all that it has
  std::string data_format;   // "channels_first", "channels_last"; empty where it has none
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
  // `config` is {"class_name": ..., "config": ...} of a Sequential or functional model; `label` names it in errors. A
  // model of any other class has no layers. Throws Error{invalid_file} for a configuration that no Keras writes.
  KerasModel(const Json& config, const std::string& label);
  KerasModel(const KerasModel&) = delete;
  KerasModel& operator=(const KerasModel&) = delete;

  // The direct layers of the model, in its order; without input layers where the model is a Sequential, as Keras has
  // it.
  const std::vector<KerasLayer>& layers() const { return root_.children; }
  // False where a class is not known, so that slots() may lack some.
  bool is_complete() const { return is_complete_; }
  // All variables, in Keras's order.
  const std::vector<KerasSlot>& slots() const { return slots_; }
  // The same in the order of the older HDF5 files' list for a model that is a layer: trainable ones, then the others.
  std::vector<KerasSlot> legacy_slots() const;
  // The layer whose group in a weights file this is; null when there is none.
  const KerasLayer* find(std::string_view weights_path) const;

 private:
  void index(const KerasLayer& layer);

  KerasLayer root_;
  bool is_complete_ = true;
  std::vector<KerasSlot> slots_;
  std::map<std::string, const KerasLayer*, std::less<>> layers_by_path_;
};

// Those of one layer and its children in the order of the older HDF5 files: trainable ones, then the others.
std::vector<KerasSlot> legacy_slots(const KerasLayer& layer);

// The list of a model's layers in its configuration; null where it is no Sequential or functional model.
const Json& layers_of_config(const Json& config);
// A layer's own name; empty where it has none.
std::string layer_name(const Json& layer);
bool is_sequential(const Json& config);

}  // namespace holdfast::format
