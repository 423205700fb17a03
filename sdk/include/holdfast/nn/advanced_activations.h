#pragma once

// Activation functions that are layers of their own in Keras, with its names, options and defaults:
//
//   Sequential model{Input{28, 28, 1}, Conv2D{16, 3}, PReLU{{.shared_axes = {0, 1}}}, Flatten{}, Dense{10}, Softmax{}};
//
// Shapes stay as they are. All other functions are layers as ActivationLayer{ActivationFunction::elu()}.

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

// The rectifier of Nair and Hinton (ICML 2010), with Keras's three numbers. Without options it is max(x, 0).
// Otherwise max_value for x >= max_value, x for threshold <= x < max_value, negative_slope * (x - threshold) below.
//
//   ReLU{{.max_value = 6}}  // from 0 to 6
class ReLU final : public LayerOf<ReLU> {
 public:
  // Throws Error{invalid_argument} unless the numbers are finite and at least 0; max_value may be unlimited.
  explicit ReLU(const ReLUOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "ReLU"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  ReLUOptions options_;
};

// Options of layers that take numbers as arguments.
struct AdvancedActivationOptions {
  std::string name = {};  // empty: the model chooses one
};

// x above 0, else negative_slope * x (Maas et al., "Rectifier Nonlinearities Improve Neural Network Acoustic Models",
// 2013). An element below 0 still has a gradient, so no unit stops learning for good.
//
//   LeakyReLU{0.1F}
class LeakyReLU final : public LayerOf<LeakyReLU> {
 public:
  // Throws Error{invalid_argument} unless the slope is finite and at least 0.
  explicit LeakyReLU(float negative_slope = 0.3F, const AdvancedActivationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "LeakyReLU"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float negative_slope_;
};

// x above 0, else alpha * (exp(x) - 1) (Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear
// Units", ICLR 2016). Far below 0 it comes close to -alpha.
class ELU final : public LayerOf<ELU> {
 public:
  // Throws Error{invalid_argument} unless alpha is finite.
  explicit ELU(float alpha = 1, const AdvancedActivationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "ELU"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float alpha_;
};

struct PReLUOptions {
  Initializer alpha_initializer = Initializer::zeros();  // where alpha begins
  // Axes along which all positions have one alpha. Axis 0 is the first axis of a sample; a negative axis counts from
  // the last one. (Keras counts the axis of samples too, so that its axis 1 is axis 0 here.)
  std::vector<std::int64_t> shared_axes = {};
  // A penalty on the size of alpha, and bounds, none by default; see regularizer.h and constraint.h.
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  std::string name = {};
};

// x above 0, else alpha * x, with a parameter alpha for each element of a sample (He et al., ICCV 2015). The parameter
// has extent 1 along shared axes.
//
//   PReLU{{.shared_axes = {0, 1}}}  // of an image [28, 28, 16]: an alpha for each channel, [1, 1, 16]
class PReLU final : public LayerOf<PReLU> {
 public:
  // Throws Error{invalid_argument} for an axis that is listed twice.
  explicit PReLU(const PReLUOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "PReLU"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  PReLUOptions options_;
};

struct SoftmaxOptions {
  // Axis 0 is the first axis of a sample; a negative axis counts from the last one.
  std::int64_t axis = -1;
  std::string name = {};
};

// exp(x_i) / sum over j of exp(x_j), along an axis, so the elements along it are probabilities: none is below 0, and
// they add up to 1. As the last layer it goes with losses of probabilities; from_logits after it is refused.
class Softmax final : public LayerOf<Softmax> {
 public:
  explicit Softmax(const SoftmaxOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Softmax"; }
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::softmax; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t axis_;
};

}  // namespace holdfast
