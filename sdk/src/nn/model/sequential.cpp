#include "holdfast/nn/sequential.h"

#include <algorithm>
#include <mutex>

#include "compute/backend.h"
#include "holdfast/base/error.h"
#include "nn/checks.h"
#include "nn/layer_names.h"
#include "nn/model_program.h"

namespace holdfast {

struct Sequential::Description {
  Shape input_shape;
  Shape output_shape;
  std::vector<SequentialLayer> layers;
  ArenaLayout parameters;
  ArenaLayout buffers;
};

// Shared by all copies of a model.
class Sequential::Weights {
 public:
  struct Values {
    std::vector<float> parameters;
    std::vector<float> buffers;
  };

  std::shared_ptr<const Values> values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }

  // For callers that cannot go on without.
  std::shared_ptr<const Values> values_or_error() const {
    std::shared_ptr<const Values> values = this->values();
    if (!values) {
      throw Error(ErrorCode::invalid_argument,
                  "the model has no weights yet: train it, or load a savepoint, or call set_weights() first");
    }
    return values;
  }

  void replace(Values values) {
    auto replacement = std::make_shared<const Values>(std::move(values));
    const std::lock_guard lock(mutex_);
    values_ = std::move(replacement);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Values> values_;  // guarded by mutex_
};

// Of a model's weights, and of one sample between two layers: beyond it no memory would hold them, and sums of sizes
// would overflow.
static constexpr std::int64_t kMaximumElements = std::int64_t{1} << 40;

static void add_entries(ArenaLayout& layout, const std::string& layer, const std::vector<WeightDescription>& weights) {
  for (const WeightDescription& weight : weights) {
    const auto elements = static_cast<std::size_t>(weight.shape.element_count());
    if (elements + layout.float_count() > static_cast<std::size_t>(kMaximumElements)) {
      throw Error(ErrorCode::invalid_argument,
                  "its " + weight.name + " " + weight.shape.to_string() + " makes a model of more than 2^40 weights");
    }
    layout.add(layer + "/" + weight.name, weight.shape);
  }
}

static void place_layer(SequentialLayer& layer, ArenaLayout& parameters, ArenaLayout& buffers) try {
  layer.output_shape = layer.layer->output_shape(layer.input_shape);
  if (layer.output_shape.element_count() > kMaximumElements) {
    throw Error(ErrorCode::invalid_argument,
                "its output " + layer.output_shape.to_string() + " has more than 2^40 elements");
  }
  layer.first_parameter = parameters.entries().size();
  layer.first_buffer = buffers.entries().size();
  add_entries(parameters, layer.name, layer.layer->parameters(layer.input_shape));
  add_entries(buffers, layer.name, layer.layer->buffers(layer.input_shape));
} catch (const Error& error) {
  throw Error(error.code(), "layer \"" + layer.name + "\" (" + std::string(layer.layer->kind()) +
                                ") cannot take an input of shape " + layer.input_shape.to_string() + ": " +
                                error.what());
}

Sequential::Sequential(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers)
    : weights_(std::make_shared<Weights>()) {
  if (layers.size() > kMaximumLayers) {
    throw Error(ErrorCode::invalid_argument, "a model has at most " + std::to_string(kMaximumLayers) + " layers, not " +
                                                 std::to_string(layers.size()));
  }
  auto description = std::make_shared<Description>();
  description->input_shape = input.shape();
  description->output_shape = input.shape();
  if (input.shape().element_count() > kMaximumElements) {
    throw Error(ErrorCode::invalid_argument, "an input of shape " + input.shape().to_string() + " is too large");
  }
  const std::vector<std::string> names = name_layers(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    SequentialLayer layer = {
        .name = names[i], .layer = layers[i], .input_shape = description->output_shape, .output_shape = {}};
    place_layer(layer, description->parameters, description->buffers);
    description->output_shape = layer.output_shape;
    description->layers.push_back(std::move(layer));
  }
  description_ = std::move(description);
}

const Shape& Sequential::input_shape() const {
  return description_->input_shape;
}
const Shape& Sequential::output_shape() const {
  return description_->output_shape;
}
const ArenaLayout& Sequential::parameters() const {
  return description_->parameters;
}
const ArenaLayout& Sequential::buffers() const {
  return description_->buffers;
}
std::span<const SequentialLayer> Sequential::layers() const {
  return description_->layers;
}

static void fill_entries(const std::vector<WeightDescription>& weights, const ArenaLayout& layout,
                         std::size_t first_entry, std::span<float> arena, std::uint64_t seed,
                         std::uint64_t first_sequence) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Random random(seed, Purpose::initial_weights, first_sequence + first_entry + i, 0);
    weights[i].initializer.fill(layout.view(arena, first_entry + i), weights[i].fan_in, weights[i].fan_out, random);
  }
}

void Sequential::initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const {
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  std::fill(buffers.begin(), buffers.end(), 0.0F);
  for (const SequentialLayer& layer : layers()) {
    fill_entries(layer.layer->parameters(layer.input_shape), this->parameters(), layer.first_parameter, parameters,
                 seed, 0);
    // Numbered after the parameters, so that no two entries share draws.
    fill_entries(layer.layer->buffers(layer.input_shape), this->buffers(), layer.first_buffer, buffers, seed,
                 this->parameters().entries().size());
  }
}

bool Sequential::has_weights() const {
  return weights_->values() != nullptr;
}

void Sequential::set_weights(std::vector<float> parameters, std::vector<float> buffers) {
  if (parameters.size() != this->parameters().float_count() || buffers.size() != this->buffers().float_count()) {
    throw Error(ErrorCode::invalid_argument,
                "the model takes " + std::to_string(this->parameters().float_count()) + " floats of parameters and " +
                    std::to_string(this->buffers().float_count()) + " of buffers (padding included), not " +
                    std::to_string(parameters.size()) + " and " + std::to_string(buffers.size()));
  }
  weights_->replace({std::move(parameters), std::move(buffers)});
}

std::span<const float> Sequential::parameter_values() const {
  return weights_->values_or_error()->parameters;
}
std::span<const float> Sequential::buffer_values() const {
  return weights_->values_or_error()->buffers;
}

Tensor Sequential::predict(const Tensor& x, std::int64_t batch_size) const {
  check_prediction(input_shape(), x.shape(), batch_size);
  const auto weights = weights_->values_or_error();
  const std::int64_t samples = x.shape()[0];
  const auto input_elements = static_cast<std::size_t>(input_shape().element_count());
  const auto output_elements = static_cast<std::size_t>(output_shape().element_count());
  Tensor y(output_shape().with_batch(samples));
  ModelProgram program(*this, compute::default_threads());
  for (std::int64_t first = 0; first < samples; first += batch_size) {
    const std::int64_t count = std::min(batch_size, samples - first);
    const auto features = x.values().subspan(static_cast<std::size_t>(first) * input_elements,
                                             static_cast<std::size_t>(count) * input_elements);
    const auto outputs = program.forward_inference(features, count, weights->parameters, weights->buffers);
    std::copy(outputs.begin(), outputs.end(),
              y.values().begin() + first * static_cast<std::ptrdiff_t>(output_elements));
  }
  return y;
}

}  // namespace holdfast
