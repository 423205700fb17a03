// A Model is a pointer to a description, which never changes, and one to weights, which may be replaced. All copies
// share both. So a trainer may keep a copy, and the weights that it sets reach the model of the application.
// docs/decisions/models.md

#include "holdfast/nn/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/model/describe.h"
#include "nn/model/description.h"
#include "nn/model/model_weights.h"

namespace holdfast {

std::shared_ptr<const ModelWeights::Values> ModelWeights::values_or_error() const {
  std::shared_ptr<const Values> values = this->values();
  if (!values) {
    throw Error(ErrorCode::invalid_argument,
                "the model has no weights yet: train it, or load a savepoint, or call set_weights() first");
  }
  return values;
}

bool ModelDescription::is_chain() const {
  // A layer with two calls has no place in a chain either, so both lists must be equally long.
  if (inputs.size() != 1 || output_sources.size() != 1 || calls.size() != layers.size()) return false;
  CallInput last;
  for (std::size_t call = 0; call < calls.size(); ++call) {
    // Layers of a nested model have a path for a name, for which the text of a chain has no place.
    const bool is_nested = layers[call].name.find('/') != std::string::npos;
    if (is_nested || calls[call].layer != call || calls[call].inputs != std::vector{last}) return false;
    last = {.call = call, .index = 0};
  }
  return output_sources.front() == last;
}

std::size_t ModelDescription::contribution_count() const {
  // A shard hands these floats to the trainer, which adds up those of all shards.
  std::size_t count = 0;
  for (const BufferUpdate& update : training.updates) {
    count += static_cast<std::size_t>(training.spec(update.sums).shape.element_count());
  }
  return count;
}

Model::Model(const Value& input, const Value& output) : Model(std::vector{input}, std::vector{output}) {}

Model::Model(const std::vector<Value>& inputs, const std::vector<Value>& outputs)
    : Model(complete(describe(inputs, outputs))) {}

static ModelDescription describe_named(const std::vector<Value>& inputs, const std::vector<NamedOutput>& outputs) {
  std::vector<Value> values;
  std::vector<std::string> names;
  for (const NamedOutput& output : outputs) {
    values.push_back(output.value);
    names.push_back(output.name);
  }
  ModelDescription model = describe(inputs, values);
  name_outputs(model, std::move(names));
  return model;
}

Model::Model(const std::vector<Value>& inputs, const std::vector<NamedOutput>& outputs)
    : Model(complete(describe_named(inputs, outputs))) {}

Model::Model(std::shared_ptr<const ModelDescription> description)
    : description_(std::move(description)), weights_(std::make_shared<ModelWeights>()) {}

std::span<const ModelArray> Model::inputs() const {
  return description_->inputs;
}

std::span<const ModelArray> Model::outputs() const {
  return description_->outputs;
}

// Most models have one input and one output, and their callers need no index.
static const Shape& shape_of_only(std::span<const ModelArray> arrays, std::string_view what) {
  if (arrays.size() == 1) return arrays.front().spec.shape;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the model has {} {}s; ask {}s() for the shape of each", arrays.size(), what, what));
}

const Shape& Model::input_shape() const {
  return shape_of_only(inputs(), "input");
}

const Shape& Model::output_shape() const {
  return shape_of_only(outputs(), "output");
}

const ArenaLayout& Model::parameters() const {
  return description_->parameters;
}

const ArenaLayout& Model::buffers() const {
  return description_->buffers;
}

std::span<const ModelLayer> Model::layers() const {
  return description_->layers;
}

bool Model::is_chain() const {
  return description_->is_chain();
}

std::optional<Activation> Model::output_activation(std::size_t output) const {
  // Each call has an entry, which is the activation of all of its outputs. A layer with several inputs tells nothing of
  // them. Losses refuse an activation that does not fit them. Layers such as Dropout hand on that of their input.
  std::vector<std::optional<Activation>> activations;
  const auto of_source = [&](const CallInput& source) {
    return source.call == CallInput::kModelInput ? std::nullopt : activations[source.call];
  };
  for (const ModelCall& call : description_->calls) {
    const auto input = call.inputs.size() == 1 ? of_source(call.inputs.front()) : std::nullopt;
    activations.push_back(description_->layers[call.layer].layer->output_activation(input));
  }
  return of_source(description_->output_sources.at(output));
}

std::vector<WeightPlace> ModelDescription::parameters_in_order() const {
  std::vector<WeightPlace> places;
  const auto is_frozen = [](const WeightStart& start) { return start.is_parameter; };
  if (std::none_of(buffer_starts.begin(), buffer_starts.end(), is_frozen)) {
    for (std::size_t entry = 0; entry < parameter_starts.size(); ++entry) places.push_back({false, entry});
    return places;
  }
  // Layers are numbered by their first calls, which declare their weights.
  for (const ModelLayer& layer : layers) {
    for (std::size_t i = 0; i < layer.parameter_count; ++i) places.push_back({false, layer.first_parameter + i});
    for (std::size_t i = 0; i < layer.buffer_count; ++i) {
      if (buffer_starts[layer.first_buffer + i].is_parameter) places.push_back({true, layer.first_buffer + i});
    }
  }
  return places;
}

void Model::initialize(std::uint64_t seed, std::span<float> parameters, std::span<float> buffers) const {
  const ModelDescription& model = *description_;
  // Entries do not fill an arena: the padding between them must have the same bits on all replicas.
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  std::fill(buffers.begin(), buffers.end(), 0.0F);
  // Each entry has a sequence of draws of its own. So its numbers do not depend on how many draws other entries take,
  // nor on which layers are frozen.
  std::uint64_t sequence = 0;
  const auto fill = [&](const WeightPlace& place) {
    const WeightStart& start = (place.is_in_buffers ? model.buffer_starts : model.parameter_starts)[place.entry];
    const ArenaLayout& layout = model.layout_of(place);
    start.initializer.fill(layout.view(place.is_in_buffers ? buffers : parameters, place.entry),
                           layout.entries()[place.entry].shape, start.fans.in, start.fans.out,
                           Random(seed, Purpose::initial_weights, sequence++, 0));
  };
  for (const WeightPlace& place : model.parameters_in_order()) fill(place);
  // Buffers are numbered after the parameters, so that no two entries share draws.
  for (std::size_t entry = 0; entry < model.buffer_starts.size(); ++entry) {
    if (!model.buffer_starts[entry].is_parameter) fill({true, entry});
  }
}

bool Model::has_weights() const {
  return weights_->values() != nullptr;
}

void Model::set_weights(std::vector<float> parameters, std::vector<float> buffers) {
  if (parameters.size() != this->parameters().float_count() || buffers.size() != this->buffers().float_count()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the model takes {} floats of parameters and {} of buffers (padding included), not {} and {}",
                    this->parameters().float_count(), this->buffers().float_count(), parameters.size(),
                    buffers.size()));
  }
  // Both are replaced at once, so that a prediction in another thread never sees a mixture.
  weights_->replace({std::move(parameters), std::move(buffers)});
}

std::span<const float> Model::parameter_values() const {
  // The span stays valid until the weights are replaced, because the model holds them too.
  return weights_->values_or_error()->parameters;
}

std::span<const float> Model::buffer_values() const {
  return weights_->values_or_error()->buffers;
}

}  // namespace holdfast
