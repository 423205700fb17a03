#pragma once

// A model whose layers follow one another:
//
//   Sequential model{Input{28, 28, 1}, Conv2D{6, 5, {.activation = Activation::relu}}, MaxPooling2D{2}, Flatten{},
//                    Dense{10}};
//   std::cout << model.summary();
//
// An Input may have another type than f32, as for the ids of an Embedding (input.h).
//
// It is a Model, with the same promises. A layer that is listed twice is two layers with weights of their own.

#include <memory>
#include <vector>

#include "holdfast/nn/input.h"
#include "holdfast/nn/model.h"

namespace holdfast {

using SequentialLayer = ModelLayer;  // what layers() returns

class Sequential : public Model {
 public:
  // Throws Error{invalid_argument} that names the layer, its input shape and what it needs instead, or
  // a name that two layers have.
  template <class... Layers>
  requires(std::is_base_of_v<Layer, Layers>&&...) explicit Sequential(const Input& input, const Layers&... layers)
      : Sequential(input, std::vector<std::shared_ptr<const Layer>>{std::make_shared<const Layers>(layers)...}) {}
  // The same for layers that are chosen at run time. None may be null.
  Sequential(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers);
  // The same model, with the same weights. Throws Error{invalid_argument} unless it is a chain.
  Sequential(const Model& model);  // NOLINT(google-explicit-constructor): Sequential model = load_model(path)

  // See Model::from_graph().
  static Sequential from_graph(std::string_view json) { return Model::from_graph(json); }
};

}  // namespace holdfast
