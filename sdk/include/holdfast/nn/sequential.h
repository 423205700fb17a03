#pragma once

// A model whose layers follow one another:
//
//   Sequential model{Input{28, 28, 1}, Conv2D{6, 5, {.activation = Activation::relu}}, MaxPooling2D{2}, Flatten{},
//   Dense{10}};
//
// The description never changes after construction and may be used from several threads. Weights are not part of it:
// training keeps them in its own state and hands them over when it is done. All copies of a model are one model and
// share its weights, so that copying is cheap and a copy that was trained leaves its result in the original.

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

// A layer in its place in a model.
struct SequentialLayer {
  std::string name;  // unique in the model
  std::shared_ptr<const Layer> layer;
  Shape input_shape;  // of one sample
  Shape output_shape;
  std::size_t first_parameter = 0;  // entry of Sequential::parameters(); as many as layer->parameters()
  std::size_t first_buffer = 0;     // entry of Sequential::buffers()
};

class Sequential {
 public:
  static constexpr std::size_t kMaximumLayers = 1024;

  // Throws Error{invalid_argument} naming the layer, its input shape and what it needs instead; or naming a name that
  // two layers have.
  template <class... Layers>
  explicit Sequential(const Input& input, const Layers&... layers)
      : Sequential(input, std::vector<std::shared_ptr<const Layer>>{std::make_shared<const Layers>(layers)...}) {}
  Sequential(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers);

  // Shapes of one sample.
  const Shape& input_shape() const;
  const Shape& output_shape() const;
  // What is trained: "dense/kernel", "batch_normalization/gamma".
  const ArenaLayout& parameters() const;
  // What layers keep up themselves: "batch_normalization/moving_mean".
  const ArenaLayout& buffers() const;
  std::span<const SequentialLayer> layers() const;

  // A table of layers, output shapes and numbers of parameters, with totals; ends with a newline.
  std::string summary() const;
  // Layers and their configuration as JSON: the same model always gives the same text.
  std::string graph() const;
  // The model that graph() described. For text from outside: throws Error{invalid_file} for everything that is no such
  // model, and allocates no more than the text's own size asks for.
  static Sequential from_graph(std::string_view json);

  // Fills both arenas, padding included: each entry from its initializer and draws of (seed, Purpose::initial_weights,
  // entry).
  void initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const;

  bool has_weights() const;
  // Replaces the weights of this model and all its copies. Throws Error{invalid_argument} unless there are
  // parameters().float_count() and buffers().float_count() values.
  void set_weights(std::vector<float> parameters, std::vector<float> buffers);
  // Arenas in the layouts above, valid until the next set_weights(). Throw Error{invalid_argument} without weights.
  std::span<const float> parameter_values() const;
  std::span<const float> buffer_values() const;

  // Runs the model in inference mode: [samples, input...] -> [samples, output...]. Throws Error{invalid_argument}
  // without weights, for another shape, or for a batch size below 1. Batches of another size may differ in the last
  // bits, because sums are then blocked differently; the same call gives the same bits for the same OpenMP number of
  // threads, which is how many it uses.
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32) const;

 private:
  struct Description;
  class Weights;

  std::shared_ptr<const Description> description_;
  std::shared_ptr<Weights> weights_;
};

}  // namespace holdfast
