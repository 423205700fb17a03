#pragma once

// All activation functions of layers: those of Activation, and those of Keras that are made of functions of values.
// Layers take one as an option, and ActivationLayer is one as a layer:
//
//   Dense{128, {.activation = Activation::relu}}
//   Dense{128, {.activation = ActivationFunction::elu()}}
//   const Value y = ActivationFunction::mish()(x);
//
// Names, formulas and defaults are those of keras.activations. A value: cheap to copy, immutable, safe to use from
// several threads.

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/compute/activation.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// max_value for x >= max_value, x for threshold <= x < max_value, negative_slope * (x - threshold) below.
struct ReLUOptions {
  static constexpr float kUnlimited = std::numeric_limits<float>::infinity();  // the default of max_value

  float max_value = kUnlimited;  // at least 0
  float negative_slope = 0;      // at least 0
  float threshold = 0;           // at least 0
  std::string name = {};         // of the layer ReLU; functions have none
};

class ActivationFunction {
 public:
  // Without numbers.
  ActivationFunction(Activation activation);  // NOLINT(google-explicit-constructor): .activation = Activation::relu

  // Throws Error{invalid_argument} unless the numbers are finite and at least 0; max_value may be unlimited.
  static ActivationFunction relu(const ReLUOptions& options = {});
  static ActivationFunction relu6();  // min(max(x, 0), 6)
  // x above 0, else negative_slope * x. The functions below throw Error{invalid_argument} for a number that is not
  // finite.
  static ActivationFunction leaky_relu(float negative_slope = 0.2F);
  // x above 0, else alpha * (exp(x) - 1)                        Clevert et al., 2016
  static ActivationFunction elu(float alpha = 1);
  // 1.0507 * elu(x, 1.67326)                                    Klambauer et al., 2017
  static ActivationFunction selu();
  // max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)            Barron, 2017. alpha is not 0.
  static ActivationFunction celu(float alpha = 1);
  static ActivationFunction gelu();          // Activation::gelu
  static ActivationFunction gelu_tanh();     // its approximation by tanh; in Keras gelu(approximate=True)
  static ActivationFunction silu();          // x * sigmoid(x), also called swish
  static ActivationFunction softplus();      // log(1 + exp(x))
  static ActivationFunction softsign();      // x / (1 + |x|)
  static ActivationFunction hard_sigmoid();  // x / 6 + 0.5, between 0 and 1
  static ActivationFunction hard_silu();     // x * hard_sigmoid(x), also called hard_swish
  static ActivationFunction hard_tanh();     // x, between -1 and 1
  static ActivationFunction tanh_shrink();   // x - tanh(x)
  // x without `threshold` of its size, 0 where it has less; and x where its size is above it, else 0. At least 0.
  static ActivationFunction soft_shrink(float threshold = 0.5F);
  static ActivationFunction hard_shrink(float threshold = 0.5F);
  // x above `limit`, else `value`. There are no defaults.
  static ActivationFunction threshold(float limit, float value);
  // (x + sqrt(x^2 + b)) / 2                                     Barron, "Squareplus", 2021. b is above 0.
  static ActivationFunction squareplus(float b = 4);
  // 0 up to -1, (x + 1)^2 / 4 between -1 and 1, x from there on: the integral of sparse_sigmoid().
  static ActivationFunction sparse_plus();
  static ActivationFunction sparse_sigmoid();  // (x + 1) / 2, between 0 and 1     Blondel et al., 2019
  static ActivationFunction exponential();     // exp(x)
  static ActivationFunction log_sigmoid();     // -softplus(-x)
  static ActivationFunction mish();            // x * tanh(softplus(x))     Misra, 2019
  static ActivationFunction log_softmax();     // x - log(sum of exp(x)), along the last axis
  // max(x - t, 0) along the last axis, with the t for which the sum is 1      Martins and Astudillo, 2016
  // Compares each element with each other one, so it is for axes of some hundreds of elements. Keras 3.15 computes
  // another t where several elements stay, so files of Keras hold none.
  static ActivationFunction sparsemax();
  // a sigmoid(b), where a and b are the halves of the last axis               Dauphin et al., 2017
  // The result has half as many elements. Throws Error{invalid_argument} when it is applied to an odd number of them.
  static ActivationFunction glu();

  // The function of a value, as the layers compute it.
  Value operator()(const Value& x) const;

  // The name in configurations and savepoints: "relu", "elu(1)".
  std::string name() const;
  // The inverse of name(). "elu" stands for "elu(1)", "swish" for "silu" and "hard_swish" for "hard_silu", as in Keras.
  // Throws Error{invalid_argument} for any other text.
  static ActivationFunction from_name(std::string_view name);

  // Which of the enumerators it is, if it is one.
  std::optional<Activation> basic() const { return basic_; }

  friend bool operator==(const ActivationFunction&, const ActivationFunction&) = default;

 private:
  ActivationFunction(std::string_view function, std::vector<float> numbers)
      : function_(function), numbers_(std::move(numbers)) {}

  std::optional<Activation> basic_{};
  std::string function_;  // empty for those of the enumeration
  std::vector<float> numbers_{};
};

}  // namespace holdfast
