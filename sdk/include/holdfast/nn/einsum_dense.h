#pragma once

// A dense layer along any axes, which an equation names, as keras.layers.EinsumDense. Each letter is an axis; axes of
// the input and the kernel that the output lacks are summed over:
//
//   EinsumDense{"abc,cd->abd", {-1, 64}, {.bias_axes = "d"}}          // Dense{64} at each of the positions b
//   EinsumDense{"abc,cde->abde", {-1, 8, 16}, {.bias_axes = "de"}}    // [b, c] becomes [b, 8 heads, 16]
//   EinsumDense{"abde,dec->abc", {-1, 128}, {.bias_axes = "c"}}       // and back
//   EinsumDense{"...x,xy->...y", {64}, {.bias_axes = "y"}}            // with any number of axes before x
//
// The first axis of input and output is that of the samples, or "..." stands for it and others. An axis of the kernel
// is summed over or new: one that input, kernel and output share is refused, since that is not a single product of
// matrices. So is "..." after other axes.
//
// Parameters: kernel, with the axes of the equation, and with bias_axes a bias that is broadcast over the other axes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/constraint.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct EinsumDenseOptions {
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  std::string bias_axes = {};  // letters of the output; empty: no bias
  // The initial values of the weights; see initializer.h.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

class EinsumDense final : public LayerOf<EinsumDense> {
 public:
  // `output_shape` has an extent for each letter of the output but that of the samples; -1 stands for that of the
  // input. Throws Error{invalid_argument} for an equation as above, or extents that are not those of its output. Inputs
  // that do not fit are refused where the layer is called.
  EinsumDense(std::string equation, std::vector<std::int64_t> output_shape, const EinsumDenseOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "EinsumDense"; }
  // The activation of the options, whatever the input.
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return options_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  // The letters of one sample, without those of "...".
  struct Terms {
    std::string input;
    std::string kernel;
    std::string output;
    bool has_ellipsis = false;
  };
  Terms terms() const;

  std::string equation_;
  std::vector<std::int64_t> output_shape_;
  EinsumDenseOptions options_;
};

}  // namespace holdfast
