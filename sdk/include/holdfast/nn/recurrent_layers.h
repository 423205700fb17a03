#pragma once

// Recurrent layers (so keras.layers.SimpleRNN, LSTM and GRU): a state is carried from step to step of a sequence.
//
//   const Value h = LSTM{256}(x);                                    // x [steps, width]: the last output, [256]
//   const Value all = LSTM{256, {.return_sequences = true}}(x);      // that of each step, [steps, 256]
//   const std::vector<Value> ends = LSTM{256, {.return_state = true}}.call({x});   // last output, state, cell
//   const Value on = LSTM{256}(x, ends[1], ends[2]);                 // begins with a state and a cell, else with zeros
//
// With the products x W of a step's input and s U of the state, and the gates in the order of Keras's weights,
//
//   SimpleRNN   state' = f(x W + s U + b)
//   LSTM        i, f, c, o = x W + s U + b               Hochreiter and Schmidhuber, 1997; Gers et al., 2000
//               cell' = r(f) cell + r(i) f(c);  state' = r(o) f(cell')
//   GRU         z, r, h = x W + b[0] and s U + b[1]      Cho et al., 2014, with the reset after the product, as cuDNN
//               state' = r(z) state + (1 - r(z)) f(h_x + r(r) h_s)
//
// where f is `activation` and r is `recurrent_activation`. The output of a step is its new state. A GRU without
// `reset_after` has b for x W alone, and for r(r) h_s the product of r(r) state (the first version of the paper).
//
// Samples of several lengths are padded and masked. A step whose mask is 0 leaves the state as it is, which is its
// output again (as in Keras with JAX):
//
//   const Value is_word = input({128}, {.dtype = DType::boolean, .name = "is_word"});
//   const Value h = LSTM{256, {.takes_mask = true}}(x, is_word);     // the mask [steps] is the last input
//
// Parameters: cell/kernel [width, gates * units], cell/recurrent_kernel [units, gates * units], and with a bias
// cell/bias, [gates * units]; that of a GRU is [2, gates * units], since the reset acts on the second row, and without
// `reset_after` [gates * units].
//
// A GRU without `reset_after`, and training with `recurrent_dropout`, compute step by step: the model has about ten
// operations for each step then, and takes longer to be made ready for a long sequence.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/compute/activation.h"
#include "holdfast/nn/constraint.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct RecurrentOptions {
  // linear, relu, tanh or sigmoid. A SimpleRNN has no second one.
  Activation activation = Activation::tanh;
  Activation recurrent_activation = Activation::sigmoid;
  bool use_bias = true;           // whether gates add one
  bool unit_forget_bias = true;   // of an LSTM: the bias of f begins with 1; the others must then begin with 0
  bool reset_after = true;        // of a GRU: the reset comes after the product
  bool return_sequences = false;  // whether the output is that of each step
  bool return_state = false;      // whether the last state, and the cell of an LSTM, are further outputs
  // From the last step to the first; a returned sequence is in this order too, as in Keras.
  bool go_backwards = false;
  bool takes_mask = false;  // whether the last input is a mask [steps], 0 where a step is skipped
  // The share of the elements of the input that training sets to zero, the same ones in each step of a sample.
  float dropout = 0;
  // The share of the elements of the state that training sets to zero in its products, the same ones in each step of a
  // sample, and others for each gate. With it, `dropout` too draws for each gate.
  float recurrent_dropout = 0;
  // The initial values of the weights; see initializer.h.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer recurrent_initializer = Initializer::orthogonal();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

// Which of the three a layer is.
enum class RecurrentKind { simple, lstm, gru };

// For Holdfast's own use: all that a recurrent layer is made with.
struct RecurrentSettings {
  RecurrentKind kind = RecurrentKind::lstm;  // which layer
  std::int64_t units = 1;                    // the size of the state
  RecurrentOptions options = {};             // as the layer was given them
};

// What the three layers share.
template <class Self>
class RecurrentLayer : public LayerOf<Self> {
 public:
  // `units` is the size of the state. Throws Error{invalid_argument} unless it is in [1, Layer::kMaximumExtent] and the
  // options are as above.
  explicit RecurrentLayer(std::int64_t units, const RecurrentOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // The name in files.
  std::string_view kind() const override { return Self::kKind; }
  // What Layer promises.
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  // What Layer promises.
  void write_config(ConfigWriter& config) const override;
  // For Holdfast's own use.
  const RecurrentSettings& settings() const { return settings_; }

 private:
  RecurrentSettings settings_;
};

// See the beginning of this header.
class SimpleRNN final : public RecurrentLayer<SimpleRNN> {
 public:
  static constexpr std::string_view kKind = "SimpleRNN";                  // the name in files
  static constexpr RecurrentKind kRecurrentKind = RecurrentKind::simple;  // for Holdfast's own use
  using RecurrentLayer::RecurrentLayer;
};

// See the beginning of this header.
class LSTM final : public RecurrentLayer<LSTM> {
 public:
  static constexpr std::string_view kKind = "LSTM";                     // the name in files
  static constexpr RecurrentKind kRecurrentKind = RecurrentKind::lstm;  // for Holdfast's own use
  using RecurrentLayer::RecurrentLayer;
};

// See the beginning of this header.
class GRU final : public RecurrentLayer<GRU> {
 public:
  static constexpr std::string_view kKind = "GRU";                     // the name in files
  static constexpr RecurrentKind kRecurrentKind = RecurrentKind::gru;  // for Holdfast's own use
  using RecurrentLayer::RecurrentLayer;
};

// How Bidirectional puts the outputs of its directions together.
enum class MergeMode { concat, sum, mul, ave };

// The default of Keras.
struct BidirectionalOptions {
  MergeMode merge_mode = MergeMode::concat;  // side by side, added, multiplied, or their mean
  std::string name = {};
};

// A recurrent layer forwards and a second one backwards, whose outputs are put together step by step (Schuster and
// Paliwal, 1997; so keras.layers.Bidirectional).
//
//   const Value y = Bidirectional{LSTM{128, {.return_sequences = true}}}(x);   // [steps, 256]
//
// A masked step of a sequence gives zeros. Initial states are those of the forward layer and then those of the backward
// layer, and so are returned ones. Parameters: those of the layer, once as forward_layer/cell/kernel and so on, and
// once as backward_layer/cell/kernel.
class Bidirectional final : public LayerOf<Bidirectional> {
 public:
  // The backward layer has the options of `layer`, in the other direction.
  template <class Self>
  explicit Bidirectional(const RecurrentLayer<Self>& layer, const BidirectionalOptions& options = {})
      : Bidirectional(layer.settings(), options) {}
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Bidirectional"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

  // For Holdfast's own use. Throws Error{invalid_argument} for a layer that goes backwards itself.
  Bidirectional(const RecurrentSettings& settings, const BidirectionalOptions& options);

 private:
  RecurrentSettings settings_;
  MergeMode merge_mode_;
};

}  // namespace holdfast
