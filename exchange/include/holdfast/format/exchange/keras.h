#pragma once

// Keras files: the HDF5 weights of Keras 3 (.weights.h5), its archives (.keras), and the older HDF5 files of weights
// alone or of a whole model, as Keras 1, 2 and 3 write them. What they are is seen from their content, not from their
// suffix. No Python runs, and no code that a file carries is looked at.
//
// Arrays are named as Keras names variables: "model/<layer>/<variable>", "model/encoder/lstm/cell/kernel",
// "optimizer/<slot>/<layer>/<variable>", "optimizer/iteration", "optimizer/learning_rate". A layer is called what the
// model's configuration calls it. A .weights.h5 file has none and knows classes alone: there it is "dense", "dense_1".
// What has no name is numbered as in the file: "model/my_layer/0", "optimizer/2".

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

enum class KerasForm {
  weights,         // *.weights.h5
  archive,         // *.keras
  legacy_weights,  // *.h5, weights alone
  legacy_model,    // *.h5, with the model's configuration
};

// "weights", "archive", "legacy_weights", "legacy_model".
std::string_view name(KerasForm form);
// Throws Error{invalid_argument} for a name that no form has.
KerasForm keras_form_from_name(std::string_view name);

// The metadata is {"kind": "keras", "keras": {...}}; its second member is what write_keras needs to write the same file
// again.
//
// A legacy file that was saved from a model of multi_gpu_model (the base model between Lambda layers, which cut the
// batch, and a Concatenate) is read as its base model, however often it was wrapped; "replicated" in the metadata says
// how often.
//
// Throws Error{invalid_file} for what is damaged or hostile, Error{unsupported} for what Keras may write and this
// reader does not know, and what the file system threw.
ArraySet read_keras(FileSystem& files, const std::string& path);

// Writes what unmodified Keras 3 loads, whole or not at all. `arrays` come from read_keras, or from a savepoint of
// Holdfast: metadata of kind "savepoint" with the graph of a Sequential. What read_keras returned and the same form
// give the same arrays under the same paths. Another form needs the model's configuration and layers that Holdfast
// knows, unless it is one of the pairs weights and archive, legacy_weights and legacy_model without the model.
//
// Optimizers of a savepoint become Keras's where both sides have their state: SGD, Adam and AdamW.
//
// Throws Error{invalid_argument} for arrays that are not what their metadata says, Error{unsupported} for a form that
// they cannot be written in. Returns the arrays that the file holds, whose names `arrays` or Keras gave them.
std::vector<ArrayInfo> write_keras(FileSystem& files, const std::string& path, const ArraySet& arrays, KerasForm form);

// A Keras model's weights, and its optimizer's state where both have it, as the arrays of `like`: a savepoint of the
// same layers in the same order, whatever they are called. Returns `like` with these values in place of its own; its
// metadata is taken over, with Keras's count of iterations as `step` where the optimizer's state is. Kernels are
// reordered where the Keras model had its channels first. Values of 16 bits become f32.
//
// Throws Error{incompatible} naming the layer, what was expected and what was found.
ArraySet keras_to_savepoint(const ArraySet& keras, const ArraySet& like);

}  // namespace holdfast::format
