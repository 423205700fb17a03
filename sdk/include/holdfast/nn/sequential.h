#pragma once

// A model whose layers follow one another:
//
//   Sequential model{Input{28, 28, 1}, Conv2D{6, 5, {.activation = Activation::relu}}, MaxPooling2D{2}, Flatten{},
//                    Dense{10}};
//   std::cout << model.summary();
//
// The description never changes after construction and may be used from several threads. Weights are
// not part of it: training keeps them in its own state and stores them in the model when it is done.
// All copies of a model share its weights. So copying is cheap, and training a copy leaves the result
// in the original.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/core/arena.h"
#include "holdfast/core/tensor.h"
#include "holdfast/nn/input.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

// A layer at its place in a model.
struct SequentialLayer {
  std::string name;  // unique in the model
  std::shared_ptr<const Layer> layer;
  Shape input_shape;  // of one sample
  Shape output_shape;
  std::size_t first_parameter = 0;  // the first of its entries in Sequential::parameters()
  std::size_t first_buffer = 0;     // the first of its entries in Sequential::buffers()
};

class Sequential {
 public:
  // The most layers that a model may have.
  static constexpr std::size_t kMaximumLayers = 1024;

  // Throws Error{invalid_argument} that names the layer, its input shape and what it needs instead, or
  // a name that two layers have.
  template <class... Layers>
  explicit Sequential(const Input& input, const Layers&... layers)
      : Sequential(input, std::vector<std::shared_ptr<const Layer>>{std::make_shared<const Layers>(layers)...}) {}
  Sequential(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers);

  // The shapes of one sample.
  const Shape& input_shape() const;
  const Shape& output_shape() const;
  // The arrays that are trained: "dense/kernel", "batch_normalization/gamma".
  const ArenaLayout& parameters() const;
  // The arrays that layers update themselves: "batch_normalization/moving_mean".
  const ArenaLayout& buffers() const;
  // All layers in order; valid as long as a copy of the model exists.
  std::span<const SequentialLayer> layers() const;

  // A table of layers, output shapes and numbers of parameters, with totals. It ends with a newline.
  std::string summary() const;
  // The layers and their configurations as JSON: the same text for the same model. Savepoints hold it.
  std::string graph() const;
  // The model that graph() described. Fit for text from outside: throws Error{invalid_file} for
  // everything that does not describe such a model, and allocates no more than the size of the text
  // asks for.
  static Sequential from_graph(std::string_view json);

  // Fills both arenas, padding included. Each entry gets the draws of (seed, Purpose::initial_weights,
  // entry) from its initializer.
  void initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const;

  // True once the model was trained, loaded or given weights.
  bool has_weights() const;
  // Replaces the weights of this model and of all its copies. Throws Error{invalid_argument} unless
  // there are parameters().float_count() and buffers().float_count() values.
  void set_weights(std::vector<float> parameters, std::vector<float> buffers);
  // The weights as arenas in the layouts above, valid until the next set_weights(). Both throw
  // Error{invalid_argument} if the model has no weights.
  std::span<const float> parameter_values() const;
  std::span<const float> buffer_values() const;

  // Applies the model in inference mode: [samples, input...] -> [samples, output...]. Throws
  // Error{invalid_argument} if the model has no weights, for another shape, or for a batch size below
  // 1. It uses as many threads as OpenMP allows.
  //
  // The same call gives the same bits for the same number of threads. Another batch size may change the
  // last bits, since sums are then blocked differently.
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32) const;

 private:
  struct Description;
  class Weights;

  std::shared_ptr<const Description> description_;
  std::shared_ptr<Weights> weights_;
};

}  // namespace holdfast
