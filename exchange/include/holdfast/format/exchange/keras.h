#pragma once

// Keras files: weights of Keras 3 (.weights.h5), its archives (.keras), and the older HDF5 files of Keras 1 to 3. The
// content decides the form, not the suffix. No Python runs, and code in a file is never looked at.
//
// Arrays have Keras's names: "model/<layer>/<variable>", "optimizer/<slot>/<layer>/<variable>". Layers are named as in
// the model's configuration, or after their classes ("dense_1") where a file has none. Other variables have numbers.
//
//   const ArraySet keras = read_keras(files, "model.keras");
//   const ArraySet ours = keras_to_savepoint(keras, read_any(files, "savepoint.h5"));

#include <span>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"
#include "holdfast/format/exchange/keras_form.h"

namespace holdfast::format {

// The metadata is {"kind": "keras", "keras": {...}}, from which write_keras can write the same file again. A legacy
// file of multi_gpu_model is read as its base model; "replicated" counts the wrappers that were removed.
// Throws Error{invalid_file} for damaged or hostile content, Error{unsupported} for what this reader does not know, and
// what the file system threw.
ArraySet read_keras(FileSystem& files, const std::string& path);

// Writes a file that unmodified Keras 3 loads: complete or not at all. `arrays` come from read_keras, or are a
// savepoint of a Sequential or a Model (metadata of kind "savepoint"). Keras accepts no '/' in the name of a layer, so
// the layers of a nested model get a dot: "encoder.dense". A form other than the one read needs the model's
// configuration and known layers, unless it only drops these. The optimizers of Holdfast keep their state, the step and
// the rate; what Keras's Nadam multiplies from step to step is computed from the step.
// Throws Error{invalid_argument} where arrays and metadata disagree, Error{unsupported} for a form that cannot hold
// them. Returns the arrays in the file, under the names that they have in `arrays`, except for optimizers' slots.
std::vector<ArrayInfo> write_keras(FileSystem& files, const std::string& path, const ArraySet& arrays, KerasForm form);

// A Keras model as Holdfast describes it.
struct KerasModelGraph {
  std::string graph;               // for Model::from_graph(); its arrays are those of read_keras, with the same names
  std::vector<std::string> notes;  // sentences about what the model does not have: regularizers, frozen layers, ...
  // Arrays of the graph that read_keras did not give, or gave in another shape: the statistics of a Normalization that
  // was given numbers.
  std::vector<NamedArray> arrays = {};
};

// Describes the Sequential or functional model that read_keras has read. Layers of nested models become layers of the
// model: "encoder/dense". Throws Error{unsupported} with the layer's name for one that Holdfast does not have, and for
// a file without a configuration; Error{invalid_file} for a configuration that no Keras writes.
KerasModelGraph keras_model_graph(const ArraySet& keras);

// Returns `like`, a savepoint of the same layers in the same order (names may differ), with the values of `keras`. The
// optimizer's state and the step come along where both sides have the same optimizer with the same slots. Otherwise the
// state is that of a new optimizer: zero, or Adagrad's initial_accumulator_value. A file of weights alone does not name
// the slots, so there their number decides. Kernels after a Flatten of channels-first images are reordered; 16-bit
// values become f32. Throws Error{incompatible} with the layer, what was expected and what was found.
ArraySet keras_to_savepoint(const ArraySet& keras, const ArraySet& like);

}  // namespace holdfast::format
