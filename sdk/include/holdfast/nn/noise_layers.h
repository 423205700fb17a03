#pragma once

// Noise in training, with the names of Keras; in inference these layers do nothing. As in Dropout, draws depend on
// seed, step, the place of the layer in the model and the place of the sample in the global batch. They do not depend
// on how the batch is cut into shards.
//
//   Sequential model{Input{784}, GaussianNoise{0.1F}, Dense{128}, GaussianDropout{0.2F}, Dense{10}};
//
// Normal numbers are made of draws of dropout, 23 for each element: costly next to Dropout, cheap next to a Dense.

#include <memory>
#include <string>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct NoiseOptions {
  std::string name = {};
};

// Adds a normal number of mean 0 and the given standard deviation to each element.
class GaussianNoise final : public LayerOf<GaussianNoise> {
 public:
  // Throws Error{invalid_argument} unless the deviation is in [0, 1], as Keras asks.
  explicit GaussianNoise(float standard_deviation, const NoiseOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "GaussianNoise"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float standard_deviation_;
};

// Multiplies each element by a normal number of mean 1 and standard deviation sqrt(rate / (1 - rate)) (Srivastava et
// al., JMLR 2014, section 10).
class GaussianDropout final : public LayerOf<GaussianDropout> {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit GaussianDropout(float rate, const NoiseOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "GaussianDropout"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float rate_;
};

// Dropout that keeps mean and variance of outputs of selu (Klambauer et al., "Self-Normalizing Neural Networks", 2017).
// With s = -1.7580993, the limit of selu, each element becomes
//
//   a * (element, or s with probability `rate`) + b,   a = 1 / sqrt((1 - rate) (1 + rate s^2)),   b = -a s rate
class AlphaDropout final : public LayerOf<AlphaDropout> {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit AlphaDropout(float rate, const NoiseOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "AlphaDropout"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float rate_;
};

}  // namespace holdfast
