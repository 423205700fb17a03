// Noise is a value without a gradient that training adds to its input or multiplies it by. Inference builds none, so
// that a trained model has no operation for it. docs/decisions/layers.md

#include "holdfast/nn/noise_layers.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/noise/noise.h"
#include "nn/operations/checks.h"
#include "nn/operations/elements.h"

namespace holdfast {

GaussianNoise::GaussianNoise(float standard_deviation, const NoiseOptions& options)
    : LayerOf(options.name), standard_deviation_(standard_deviation) {
  // Keras has the same bounds.
  if (standard_deviation >= 0 && standard_deviation <= 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("GaussianNoise needs a standard deviation from 0 to 1, not {}; scale the input instead",
                          standard_deviation));
}

std::vector<Value> GaussianNoise::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  if (!builder.is_training() || standard_deviation_ == 0) return {input};
  return {input + normal_noise(builder, input) * standard_deviation_};
}

void GaussianNoise::write_config(ConfigWriter& config) const {
  config.number("stddev", standard_deviation_);
}

std::shared_ptr<const Layer> GaussianNoise::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const GaussianNoise>(config.number("stddev"), NoiseOptions{.name = name});
}

GaussianDropout::GaussianDropout(float rate, const NoiseOptions& options) : LayerOf(options.name), rate_(rate) {
  check_rate("GaussianDropout", rate);
}

std::vector<Value> GaussianDropout::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  if (!builder.is_training() || rate_ == 0) return {input};
  // The factor has the mean 1 and the variance of dropout with this rate (Srivastava et al., 2014).
  return {input * (normal_noise(builder, input) * std::sqrt(rate_ / (1 - rate_)) + 1.0F)};
}

void GaussianDropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> GaussianDropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const GaussianDropout>(config.number("rate"), NoiseOptions{.name = name});
}

AlphaDropout::AlphaDropout(float rate, const NoiseOptions& options) : LayerOf(options.name), rate_(rate) {
  check_rate("AlphaDropout", rate);
}

std::vector<Value> AlphaDropout::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  if (!builder.is_training() || rate_ == 0) return {input};
  // -alpha * scale of selu.
  constexpr double kLimit = -1.6732632423543772 * 1.0507009873554805;
  // Dropped elements become the limit of selu. The factor a and the offset b then restore mean and variance (Klambauer
  // et al., 2017).
  const double rate = rate_;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * kLimit * kLimit));
  const double b = -a * kLimit * rate;
  const Value kept = input * static_cast<float>(a) + static_cast<float>(b);
  // The mask is 0 or a factor. Only whether it is 0 matters here.
  return {element_function(compute::ElementFunction::select,
                           {dropout_mask(builder, input, rate_), kept, static_cast<float>(a * kLimit + b)})};
}

void AlphaDropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> AlphaDropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const AlphaDropout>(config.number("rate"), NoiseOptions{.name = name});
}

}  // namespace holdfast
