// The numbers are the initial values of buffers, so that they are saved, compared and replaced as all weights are. The
// configuration holds them too: a model that is read from its text begins as this one does. docs/decisions/buffers.md

#include "holdfast/nn/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"
#include "nn/operations/elements.h"
#include "nn/operations/operations.h"
#include "nn/operations/strides.h"

namespace holdfast {

namespace {

// The axes of a sample that have statistics of their own, from the first to the last.
std::vector<std::size_t> kept_axes(const NormalizationOptions& options, const Shape& sample) {
  // Negative axes and others may name the same one, which shows once the rank is known. The set also sorts them.
  std::set<std::size_t> axes;
  for (const std::int64_t axis : options.axis) {
    if (axes.insert(checked_axis(axis, sample, "Normalization")).second) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("Normalization was given axis {} twice", axis));
  }
  return {axes.begin(), axes.end()};
}

void check_statistics(const NormalizationOptions& options) {
  if (options.mean.size() != options.variance.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Normalization needs as many means as variances, not {} and {}; give both or adapt the "
                            "layer to data",
                            options.mean.size(), options.variance.size()));
  }
  for (std::size_t i = 0; i < options.mean.size(); ++i) {
    // The numbers may come from a file. A NaN would reach each output.
    if (std::isfinite(options.mean[i]) && std::isfinite(options.variance[i]) && options.variance[i] >= 0) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Normalization needs finite means and finite variances of at least 0, but number {} is "
                            "{} and {}",
                            i, options.mean[i], options.variance[i]));
  }
}

// The statistics as they were given, a value for all, or what leaves features as they are.
Initializer initial_values(const std::vector<float>& given, float otherwise) {
  // One number serves all positions, so the shape of the input does not matter for it.
  if (given.size() > 1) return Initializer::values(given);
  return Initializer::constant(given.empty() ? otherwise : given.front());
}

}  // namespace

Normalization::Normalization(const NormalizationOptions& options) : LayerOf(options.name), options_(options) {
  check_statistics(options);
  // Axes that are equal for one rank alone are found by kept_axes().
  if (std::set(options.axis.begin(), options.axis.end()).size() == options.axis.size()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("Normalization needs different axes, not [{}]", fmt::join(options.axis, ", ")));
}

std::vector<Value> Normalization::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  std::vector<std::int64_t> broadcast(input.shape().rank(), 1);
  std::vector<std::int64_t> extents;
  for (const std::size_t axis : kept_axes(options_, input.shape())) {
    broadcast[axis] = input.shape()[axis];
    extents.push_back(input.shape()[axis]);
  }
  // Without an axis there is one mean for all elements, and a buffer has an axis.
  if (extents.empty()) extents.push_back(1);
  const Shape shape(extents);
  if (options_.mean.size() > 1 && static_cast<std::int64_t>(options_.mean.size()) != shape.element_count()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it has {} means and variances, but the input has {} positions along its axes; give one "
                            "number for each position, or adapt the layer to such data",
                            options_.mean.size(), shape.element_count()));
  }
  // The buffers have the kept axes alone. A view gives them the rank of the input, so that they are broadcast.
  const Shape aligned(broadcast);
  const Value mean = reshape(builder.buffer("mean", shape, initial_values(options_.mean, 0)), aligned);
  const Value variance = reshape(builder.buffer("variance", shape, initial_values(options_.variance, 1)), aligned);
  // As in Keras, the bound keeps features that never change from being divided by 0.
  const Value deviation = element_function(compute::ElementFunction::maximum, {square_root(variance), 1e-7F});
  return {options_.invert ? input * deviation + mean : (input - mean) / deviation};
}

static std::vector<std::optional<float>> optional_numbers(const std::vector<float>& numbers) {
  return {numbers.begin(), numbers.end()};
}

void Normalization::write_config(ConfigWriter& config) const {
  config.integers("axis", options_.axis);
  config.numbers("mean", optional_numbers(options_.mean));
  config.numbers("variance", optional_numbers(options_.variance));
  config.boolean("invert", options_.invert);
}

static std::vector<float> present_numbers(ConfigReader& config, std::string_view key) {
  std::vector<float> numbers;
  for (const std::optional<float>& number : config.numbers(key)) {
    // A list of a file may have gaps, and statistics must not.
    if (!number) throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" of Normalization lacks a number", key));
    numbers.push_back(*number);
  }
  return numbers;
}

std::shared_ptr<const Layer> Normalization::from_config(const std::string& name, ConfigReader& config) {
  NormalizationOptions options = {.axis = config.integers("axis"), .name = name};
  options.mean = present_numbers(config, "mean");
  options.variance = present_numbers(config, "variance");
  options.invert = config.boolean("invert");
  return std::make_shared<const Normalization>(options);
}

Normalization Normalization::adapt(const Tensor& samples) const {
  if (samples.shape().rank() == 0) {
    throw Error(ErrorCode::invalid_argument, "Normalization adapts to samples [samples, ...], not to a single number");
  }
  const Shape sample = samples.shape().without_batch();
  // The tensor may be large, so its samples are read where they lie.
  NormalizationStatistics statistics(*this, sample);
  const auto elements = static_cast<std::size_t>(sample.element_count());
  for (std::span<const float> rest = samples.values(); !rest.empty(); rest = rest.subspan(elements)) {
    statistics.add(rest.first(elements));
  }
  return statistics.adapted();
}

NormalizationStatistics::NormalizationStatistics(const Normalization& layer, const Shape& sample)
    : options_(layer.options()) {
  const std::vector<std::size_t> kept = kept_axes(options_, sample);
  const std::vector<std::int64_t> strides = row_major_strides(sample);
  std::size_t positions = 1;
  for (const std::size_t axis : kept) positions *= static_cast<std::size_t>(sample[axis]);
  // Each element knows its position before the first sample comes, so that samples are read in one pass without
  // divisions.
  for (std::int64_t element = 0; element < sample.element_count(); ++element) {
    std::int64_t position = 0;
    for (const std::size_t axis : kept) position = position * sample[axis] + element / strides[axis] % sample[axis];
    position_of_element_.push_back(static_cast<std::size_t>(position));
  }
  means_.assign(positions, 0);
  square_sums_.assign(positions, 0);
  counts_.assign(positions, 0);
}

void NormalizationStatistics::add(std::span<const float> sample) {
  HOLDFAST_ASSERT(sample.size() == position_of_element_.size());
  // All elements are checked before the first one counts. So a caller may leave out a sample that is refused.
  const auto wrong = std::find_if(sample.begin(), sample.end(), [](float value) { return !std::isfinite(value); });
  if (wrong != sample.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Normalization cannot adapt to {} in element {} of a sample; remove such samples first",
                            *wrong, wrong - sample.begin()));
  }
  for (std::size_t element = 0; element < sample.size(); ++element) {
    const double value = sample[element];
    const std::size_t position = position_of_element_[element];
    // Welford's method ("Note on a Method for Calculating Corrected Sums of Squares and Products", 1962). Sums of
    // squares would lose the digits of a small variance.
    const double distance = value - means_[position];
    means_[position] += distance / ++counts_[position];
    square_sums_[position] += distance * (value - means_[position]);
  }
}

Normalization NormalizationStatistics::adapted() const {
  // Each sample adds equally many elements to all positions, so the first count tells.
  if (counts_.front() == 0) {
    throw Error(ErrorCode::invalid_argument, "Normalization cannot adapt to no samples; pass at least one");
  }
  NormalizationOptions options = options_;
  options.mean.clear();
  options.variance.clear();
  for (std::size_t position = 0; position < means_.size(); ++position) {
    options.mean.push_back(static_cast<float>(means_[position]));
    // The variance is that of the data, divided by n as in Keras, and not an estimate for more data.
    options.variance.push_back(static_cast<float>(square_sums_[position] / counts_[position]));
  }
  return Normalization(options);
}

}  // namespace holdfast
