#pragma once

// A model as a graph of layers, with one or several inputs and outputs:
//
//   const Value x = input({28, 28, 1});
//   const Value features = Conv2D{16, 3, {.padding = Padding::same}}(x);
//   const Value y = Conv2D{16, 3, {.padding = Padding::same}}(features);
//   const Model model(x, Dense{10}(Flatten{}(Add{}(features, y))));
//   std::cout << model.summary();
//
// The description never changes after construction and may be used from several threads. Weights are not part of it:
// training keeps them in its own state and stores them in the model when it is done. All copies of a model share its
// weights. So copying is cheap, and training a copy leaves the result in the original.
//
// No layer mixes samples, except for the statistics of BatchNormalization, which are those of a shard. A loss that
// compares the samples of a batch with each other is therefore not possible: a batch may be cut into shards anywhere.
// value_loss.h says what to do instead.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/arena.h"
#include "holdfast/core/tensor.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/value.h"

namespace holdfast {

struct ModelDescription;
class ModelWeights;

// A layer of a model.
struct ModelLayer {
  std::string name;  // unique in the model; "encoder/dense" if the layer came with a model named "encoder"
  std::shared_ptr<const Layer> layer;  // never null
  // The shapes of one sample at the layer's first call.
  Shape input_shape;
  Shape output_shape;
  std::size_t first_parameter = 0;  // its entries in Model::parameters()
  std::size_t parameter_count = 0;  // how many entries that are
  std::size_t first_buffer = 0;     // its entries in Model::buffers()
  std::size_t buffer_count = 0;     // how many entries that are
  bool is_frozen = false;           // see Model::frozen(); then its parameters are among the buffers
};

// An input or an output of a model.
struct ModelArray {
  // An input has a name of its own. An output has the name that it was given, or that of the layer which makes it, with
  // a number from the layer's second output on: "dense", "dense_1".
  std::string name;
  ValueSpec spec;  // of one sample
};

// An output with a name of its own. Results are logged by it, and targets of a data set may have it:
//
//   const Dense score{1};
//   const Model model({a, b}, {{"of_a", score(a)}, {"of_b", score(b)}});
struct NamedOutput {
  std::string name;  // letters, digits and characters of "_-.", as names of layers have; unique among the outputs
  Value value;       // what the model gives under that name
};

// The memory of one thread's passes over some samples, a shard of a batch, in bytes. fit() keeps more, such as targets
// and the optimizer's slots; training_memory() of holdfast/train/training_memory.h plans all of it.
struct PassMemory {
  std::size_t weights = 0;    // parameters and buffers
  std::size_t gradients = 0;  // of the parameters, and the statistics of the batch; 0 in a prediction
  std::size_t samples = 0;    // the inputs, and in a training step the gradients of the outputs
  std::size_t arrays = 0;     // what operations compute; arrays that are never needed together share memory
  // Scratch memory of kernels, such as a convolution that orders its input anew, for one thread on this machine's CPU.
  std::size_t workspace = 0;

  std::size_t total() const { return weights + gradients + samples + arrays + workspace; }  // in bytes
};

// What Model::drawing() shows.
struct DrawingOptions {
  bool shows_shapes = false;  // of one sample, at the edges
};

class Model {
 public:
  // The most layers that a model may have, and the most calls of layers.
  static constexpr std::size_t kMaximumLayers = 1024;

  // The layers from the inputs to the outputs. Throws Error{invalid_argument} that names the layer and what is wrong
  // with it, or an input that the outputs need and that is not listed.
  Model(const Value& input, const Value& output);
  Model(const std::vector<Value>& inputs, const std::vector<Value>& outputs);
  // The same, with names for the outputs. Files keep them.
  Model(const std::vector<Value>& inputs, const std::vector<NamedOutput>& outputs);

  // Calls the model like a layer: its layers become layers of the model that is described, which all calls share. Names
  // are prefixed with `name`, which each nested model needs, and which is the same for all calls of it in one model.
  //
  // The weights themselves are not part of a description, and do not come with the call: the model around it begins
  // without weights. take_weights() gives it those of this model.
  std::vector<Value> call(const std::vector<Value>& inputs, const std::string& name) const;

  // A model that ends at a layer, for the extraction of features:
  //
  //   const Model features = load_model("savepoint.h5").output_of("encoder/pool");
  //   const Tensor x = features.predict(images);
  //
  // Its outputs are those of the layer's call number `call`, in the order of the graph; layers of a nested model are
  // named by their path. It has the inputs that they need, the same layers, and a copy of the weights if there are any.
  // Throws Error{not_found} that names close layers if the model has no such layer, and Error{invalid_argument} if the
  // layer has no such call.
  Model output_of(std::string_view layer, std::size_t call = 0) const;
  // The same for several layers at once: the outputs of their first calls, in this order.
  Model outputs_of(const std::vector<std::string>& layers) const;

  // A copy of the model in which the layers whose names match `pattern` are frozen, besides those that are already:
  //
  //   const Model features = load_model("savepoint.h5").output_of("pool").frozen();
  //   const Model tuned = model.frozen("base/*").unfrozen("base/block5_*");
  //
  // Training leaves the weights of frozen layers as they are. No gradient is computed for them, nothing is summed over
  // replicas, and optimizers have no slots for them. BatchNormalization computes as in inference, and its moving
  // averages stay. Other layers compute as before: a frozen Dropout drops. In the copy, the parameters of frozen layers
  // are among buffers(). All draws and all names stay, and so does the flag in savepoints and in files of Keras.
  //
  // In a pattern, * stands for any characters, also none and also "/", and ? for one. The copy has weights of its own
  // if there are any. Throws Error{not_found} that names close layers if no layer matches.
  Model frozen(std::string_view pattern = "*") const;
  // The opposite: a copy in which these layers are trained.
  Model unfrozen(std::string_view pattern = "*") const;
  // The names of the frozen layers, in the order of layers().
  std::vector<std::string> frozen_layers() const;

  std::span<const ModelArray> inputs() const;   // in the order of the constructor
  std::span<const ModelArray> outputs() const;  // in the order of the constructor
  // The shapes of one sample, of a model with one input and one output; else throw Error{invalid_argument}.
  const Shape& input_shape() const;
  const Shape& output_shape() const;
  // The arrays that are trained: "dense/kernel", "batch_normalization/gamma".
  const ArenaLayout& parameters() const;
  // The arrays that training keeps and no optimizer changes: those that layers update themselves, such as
  // "batch_normalization/moving_mean", and all weights of frozen layers.
  const ArenaLayout& buffers() const;
  // All layers, in the order of their first calls: depth first from the outputs. Valid as long as a copy of the model
  // exists.
  std::span<const ModelLayer> layers() const;
  // The activation that made an output; empty if it is not known.
  std::optional<Activation> output_activation(std::size_t output = 0) const;
  // Whether each layer takes the output of the one before it, as in a Sequential.
  bool is_chain() const;

  // A table of layers, output shapes, numbers of parameters and, unless the model is a chain, the layers that each is
  // connected to, with totals. Types other than f32 and frozen layers are marked, and several outputs, or those with
  // names of their own, are listed. It ends with a newline.
  std::string summary() const;
  // The same, with training_memory() and prediction_memory() for so many samples at a time.
  std::string summary(std::int64_t samples) const;
  // The peak of the passes of one thread over so many samples: a shard of a batch. Makes the kernels of such a step,
  // which may take as long as a first step, but none of its arrays. Throws Error{invalid_argument} for less than one
  // sample, or for more than any memory would hold.
  PassMemory training_memory(std::int64_t samples) const;
  PassMemory prediction_memory(std::int64_t samples) const;
  // The calls of layers as a graph in the language of Graphviz's `dot`, one box a call. `holdfast plot` makes an image
  // of it. Names are escaped, so the text is safe for models from outside.
  std::string drawing(const DrawingOptions& options = {}) const;
  // The layers and their configurations as JSON: the same text for the same model. Savepoints hold it.
  std::string graph() const;
  // The model that graph() described. Fit for text from outside: throws Error{invalid_file} for everything that does
  // not describe such a model, and allocates no more than the size of the text asks for.
  static Model from_graph(std::string_view json);

  // Fills both arenas, padding included. Each entry gets the draws of (seed, Purpose::initial_weights,
  // entry) from its initializer.
  void initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const;

  // True once the model was trained, loaded or given weights.
  bool has_weights() const;
  // Replaces the weights of this model and of all its copies. Throws Error{invalid_argument} unless
  // there are parameters().float_count() and buffers().float_count() values.
  void set_weights(std::vector<float> parameters, std::vector<float> buffers);
  // Gives the layers that were described by part.call(..., name) the weights of `part`. All other layers keep the
  // weights that they have, or get those that initialize() draws with this seed:
  //
  //   const Value x = input({12, 12, 1});
  //   Model model(x, Dense{10}(features.call({x}, "base").at(0)));
  //   model.take_weights(features, "base");
  //
  // With an empty name, layers of both models correspond that have equal names. Throws Error{invalid_argument} if
  // `part` has no weights, and Error{incompatible} that names an array which this model lacks or has in another shape.
  void take_weights(const Model& part, const std::string& name, std::uint64_t seed = 0);
  // The weights as arenas in the layouts above, valid until the next set_weights(). Both throw
  // Error{invalid_argument} if the model has no weights.
  std::span<const float> parameter_values() const;
  std::span<const float> buffer_values() const;

  // Applies the model in inference mode: [samples, input...] -> [samples, output...]. Throws Error{invalid_argument} if
  // the model has no weights, for another shape, or for a batch size below 1. It uses as many threads as OpenMP allows.
  // An output of integers or booleans is a tensor of i32.
  //
  // The same call gives the same bits for the same number of threads. Another batch size may change the
  // last bits, since sums are then blocked differently.
  Tensor predict(const Tensor& x, std::int64_t batch_size = 32) const;
  // The same for several inputs or outputs, in their order, and for inputs of other types than f32.
  std::vector<Tensor> predict(const std::vector<Tensor>& inputs, std::int64_t batch_size = 32) const;

  // For Holdfast's own use: a copy in which these layers are frozen and no others.
  Model with_frozen_layers(const std::vector<std::string>& names) const;
  // For Holdfast's own use.
  const std::shared_ptr<const ModelDescription>& description() const { return description_; }

 protected:
  // For classes that hold a model of their own form.
  explicit Model(std::shared_ptr<const ModelDescription> description);

 private:
  // A copy with one flag for each layer.
  Model with_frozen(const std::vector<bool>& are_frozen) const;
  // The part that ends with these calls.
  Model part(const std::vector<std::size_t>& calls) const;

  std::shared_ptr<const ModelDescription> description_;
  std::shared_ptr<ModelWeights> weights_;
};

}  // namespace holdfast
