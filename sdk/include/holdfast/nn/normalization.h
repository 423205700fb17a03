#pragma once

// Shifts and scales features by their mean and deviation in the data (keras.layers.Normalization):
//
//   output = (input - mean) / max(sqrt(variance), 1e-7)
//
//   const Normalization normalization = Normalization{}.adapt(features);   // a tensor [samples, ...]
//   Sequential model{Input{4}, normalization, Dense{8}};
//
// Mean and variance are computed in double before the model is made, and for a data set by adapt() of
// holdfast/data/adapt.h. They become buffers of the model: part of the state from step 0 on and of every savepoint, and
// not trained. Weights that are loaded replace them. A layer that was neither given numbers nor adapted has mean 0 and
// variance 1.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/core/tensor.h"
#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

struct NormalizationOptions {
  // The axes along which each position has a mean and a variance of its own; none: one mean and variance for all. Axis
  // 0 is the first axis of a sample; a negative axis counts from the last one. (Keras counts the axis of samples too.)
  std::vector<std::int64_t> axis = {-1};
  // Both or none: one number for each position, row-major over the axes above, or a single number for all.
  std::vector<float> mean = {};
  std::vector<float> variance = {};  // as many as means
  bool invert = false;               // output = input * max(sqrt(variance), 1e-7) + mean
  std::string name = {};
};

class Normalization final : public LayerOf<Normalization> {
 public:
  // Throws Error{invalid_argument} if only one of mean and variance is given, they differ in size, a number is not
  // finite, a variance is negative, or an axis is listed twice.
  explicit Normalization(const NormalizationOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // This layer with the mean and the (biased) variance of the samples, [samples, ...]. Throws Error{invalid_argument}
  // for no samples, too few axes, or a number that is not finite.
  Normalization adapt(const Tensor& samples) const;

  // What Layer promises.
  std::string_view kind() const override { return "Normalization"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

  // As they were given, or computed by adapt().
  const NormalizationOptions& options() const { return options_; }

 private:
  NormalizationOptions options_;
};

// Mean and variance of samples that come one after another, in double (Welford, "Note on a Method for Calculating
// Corrected Sums of Squares and Products", 1962). The result depends on the order of the samples in its last bits.
class NormalizationStatistics {
 public:
  // Throws Error{invalid_argument} for an axis that a sample of this shape has not.
  NormalizationStatistics(const Normalization& layer, const Shape& sample_shape);

  // The elements of one sample, row-major. Asserts their number; throws Error{invalid_argument} for one that is not
  // finite, and then nothing of the sample counts.
  void add(std::span<const float> sample);

  // The layer with these statistics. Throws Error{invalid_argument} if no sample was added.
  Normalization adapted() const;

 private:
  NormalizationOptions options_;
  std::vector<std::size_t> position_of_element_;  // among the means
  std::vector<double> means_;
  std::vector<double> square_sums_;  // of distances from the mean
  std::vector<double> counts_;
};

}  // namespace holdfast
