#pragma once

// Weights that Holdfast's layers have and Keras's do not: the statistics that a Normalization was given as options.

#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "keras/keras_functional_reader.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

// The arrays "model/..." that a file of `model` needs besides those of `keras`, and those of `keras` that have another
// shape in Holdfast.
std::vector<NamedArray> completing_arrays(const KerasFunctional& model, const ArraySet& keras);

// The configuration under which Keras's layers have all these weights.
Json completed_config(Json config);

// The names that arrays of the model's layers would have if they are scalars in Keras, and lists of one number in
// Holdfast: statistics, and scales of attentions.
std::vector<std::string> scalar_arrays(const ModelGraph& graph);

}  // namespace holdfast::format
