#pragma once

// What Holdfast has for a layer of a Keras model.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"
#include "keras_layers/model_graph_shapes.h"

namespace holdfast::format {

// A call of a Keras layer, or of a function of keras.ops.
struct KerasCall {
  std::string path;  // the layer's name, with those of the models around it
  std::string class_name;
  bool is_operation = false;
  const Json& config;
  std::vector<MaybeShape> inputs{};  // of one sample of each value
  // The arguments of an operation in order, missing where one is a value.
  std::vector<std::optional<double>> arguments{};
  const Json* index = nullptr;  // what GetItem takes between brackets; null for all others
  // Named arguments of the call, of those that the layer's row has.
  std::vector<std::string> flags{};
  std::vector<std::string> named{};
};

// A weight of Holdfast's layer that the Keras layer does not have, f32.
struct ConstantWeight {
  static constexpr std::int64_t kMaxElements = std::int64_t{1} << 24;

  std::string name;  // "gamma"
  SampleShape shape;
  std::vector<float> values;  // one for each element, or one for all
};

// One of the layers that stand for a Keras layer. The first takes the call's values, each other one the output of the
// one before it.
struct HoldfastStep {
  std::string suffix;  // of its name; empty for the layer that has the weights
  std::string kind;
  Json config;
  std::vector<ConstantWeight> weights{};
};

// Adds sentences to `notes` about what a model of Holdfast does not have, such as regularizers. Throws
// Error{unsupported} with the layer's name for a class, or an option, that has no counterpart, and lists those that do.
std::vector<HoldfastStep> steps_of_keras_call(const KerasCall& call, std::vector<std::string>& notes);

// Whether a Keras layer is a Rescaling with a number for each channel, for which Holdfast has a Normalization.
bool becomes_normalization(std::string_view class_name, const Json& config);

// The Keras classes that have a counterpart, as words of a sentence.
std::string known_keras_classes();

// Throws Error{unsupported} with "the Keras model cannot become a model of Holdfast: its layer PATH (CLASS) PROBLEM".
[[noreturn]] void refuse_keras_layer(const std::string& path, const std::string& class_name,
                                     const std::string& problem);

}  // namespace holdfast::format
