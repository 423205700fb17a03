// A description holds indices instead of values, so that the nodes of a long model are freed as soon as it is made. The
// walk from the outputs gives calls their order, which numbers weights and draws. docs/decisions/models.md

#include "nn/model/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/input.h"
#include "nn/graph/layer_names.h"
#include "nn/graph/value_node.h"
#include "nn/layers/layer_registry.h"
#include "nn/layers/operation_layer.h"
#include "nn/operations/weight.h"

namespace holdfast {

namespace {

// Each step has Model::kMaximumLayers sequences of draws, one for each call. More calls would take those of the next
// step.
[[noreturn]] void refuse_count(std::size_t layers) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("a model has at most {} layers and calls, not {}; describe several of them as one layer of your "
                  "own",
                  Model::kMaximumLayers, layers));
}

void check_input(const Shape& shape) {
  if (shape.element_count() <= kMaximumElements) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("an input of shape {} is too large", shape.to_string()));
}

class Describer {
 public:
  ModelDescription run(const std::vector<Value>& inputs, const std::vector<Value>& outputs);

 private:
  void add_input(const Value& input);
  void add_call(const std::shared_ptr<const ValueNode>& node);
  std::size_t layer_of(const ValueNode& node);
  void check_model_name(const ValueNode& node);
  std::size_t add_operation(const ValueNode& node);
  CallInput source_of(const Value& value) const;
  std::size_t segment_of(const ValueNode& node);

  ModelDescription model_;
  std::vector<LayerName> names_;
  std::unordered_map<const int*, std::size_t> layers_;  // by identity
  std::unordered_map<const int*, std::size_t> segments_;
  std::unordered_map<const ModelDescription*, std::string> model_names_;  // of nested models, by identity
  // The first of a node's outputs.
  std::unordered_map<const ValueNode*, CallInput> sources_;
};

void Describer::add_input(const Value& input) {
  const ValueNode& node = *input.node();
  if (node.kind != ValueNode::Kind::input) {
    throw Error(ErrorCode::invalid_argument,
                "a model's inputs are values that input() has made, not outputs of layers; to use a part of a model, "
                "describe it as a model of its own");
  }
  const std::size_t index = model_.inputs.size();
  if (!sources_.emplace(&node, CallInput{.call = CallInput::kModelInput, .index = index}).second) {
    throw Error(ErrorCode::invalid_argument, fmt::format("input {} of shape {} is listed twice; list each input once",
                                                         index, input.shape().to_string()));
  }
  check_input(input.shape());
  std::string name = node.name;
  if (name.empty()) name = index == 0 ? "input" : fmt::format("input_{}", index);
  for (const ModelArray& other : model_.inputs) {
    if (other.name == name) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("two inputs of the model are named {}; give one another name", quoted_text(name, 100)));
    }
  }
  model_.inputs.push_back({.name = std::move(name), .spec = input.spec()});
}

std::size_t Describer::layer_of(const ValueNode& node) {
  if (node.kind == ValueNode::Kind::operation) return add_operation(node);
  // Copies of a layer share its identity. So they are one layer of the model, with one set of weights.
  const auto [place, is_new] = layers_.try_emplace(node.identity.get(), model_.layers.size());
  if (is_new) {
    if (model_.layers.size() == Model::kMaximumLayers) refuse_count(model_.layers.size() + 1);
    model_.layers.push_back({.name = {}, .layer = node.layer, .input_shape = {}, .output_shape = {}});
    model_.identities.push_back(node.identity);
    names_.push_back({.given = node.name, .kind = std::string(node.layer->kind())});
  }
  // Weights that are frozen in one of the models that share them are frozen in all, as in Keras.
  if (node.is_frozen) model_.layers[place->second].is_frozen = true;
  return place->second;
}

// An operation is a layer with one call.
std::size_t Describer::add_operation(const ValueNode& node) {
  if (model_.layers.size() == Model::kMaximumLayers) refuse_count(model_.layers.size() + 1);
  // It has no weights that several calls could share.
  auto layer = std::make_shared<const OperationLayer>(node.operation);
  names_.push_back({.given = {}, .kind = layer->label()});
  model_.identities.push_back(layer->identity());
  model_.layers.push_back({.name = {}, .layer = std::move(layer), .input_shape = {}, .output_shape = {}});
  return model_.layers.size() - 1;
}

CallInput Describer::source_of(const Value& value) const {
  // An input has one output. Its index already says which input of the model it is.
  CallInput source = sources_.at(value.node().get());
  if (source.call != CallInput::kModelInput) source.index = value.output();
  return source;
}

// All calls of a nested model share its layers, and a layer has one name. A second name would be lost.
void Describer::check_model_name(const ValueNode& node) {
  if (!node.called_model) return;
  const std::string name = node.name.substr(0, node.name.find('/'));
  const auto [found, is_new] = model_names_.try_emplace(node.called_model.get(), name);
  if (is_new || found->second == name) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("one model is called as \"{}\" and as \"{}\", but its calls share their layers, which have one "
                  "name; give all calls the same name, or describe another model for weights of their own",
                  found->second, name));
}

// Segments are numbered from 1 by their first calls.
std::size_t Describer::segment_of(const ValueNode& node) {
  // Files hold these numbers, so they must not depend on addresses.
  if (!node.recomputed_segment) return 0;
  return segments_.try_emplace(node.recomputed_segment.get(), segments_.size() + 1).first->second;
}

void Describer::add_call(const std::shared_ptr<const ValueNode>& node) {
  if (node->kind == ValueNode::Kind::input) {
    const std::string name = node->name.empty() ? "without a name" : quoted_text(node->name, 100);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the outputs need the input {} of shape {}, which is not among the inputs of the model; list "
                    "it there",
                    name, node->outputs[0].shape.to_string()));
  }
  // Bound values exist only while a layer is built.
  HOLDFAST_ASSERT(node->kind != ValueNode::Kind::bound);
  if (model_.calls.size() == Model::kMaximumLayers) refuse_count(model_.calls.size() + 1);
  check_model_name(*node);
  ModelCall call = {.layer = layer_of(*node), .inputs = {}};
  // The order lists a node after those that it needs, so each input has a source.
  for (const MaybeValue& input : node->inputs) call.inputs.push_back(source_of(*input));
  call.segment = segment_of(*node);
  sources_[node.get()] = {.call = model_.calls.size(), .index = 0};
  model_.calls.push_back(std::move(call));
}

ModelDescription Describer::run(const std::vector<Value>& inputs, const std::vector<Value>& outputs) {
  if (inputs.empty() || outputs.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a model needs at least one input and one output, not {} and {}; list them", inputs.size(),
                            outputs.size()));
  }
  // The walk ends at nodes that have a source, so the inputs come first.
  for (const Value& input : inputs) add_input(input);
  const auto is_input = [this](const auto& node) { return sources_.contains(node.get()); };
  for (const auto& node : nodes_in_order(outputs, is_input)) add_call(node);
  for (const Value& output : outputs) model_.output_sources.push_back(source_of(output));
  // Names are chosen last. A layer keeps the name that it was given, also where an earlier one would have chosen the
  // same.
  const std::vector<std::string> names = name_layers(names_);
  for (std::size_t layer = 0; layer < names.size(); ++layer) model_.layers[layer].name = names[layer];
  return std::move(model_);
}

}  // namespace

ModelDescription describe(const std::vector<Value>& inputs, const std::vector<Value>& outputs) {
  return Describer().run(inputs, outputs);
}

void name_outputs(ModelDescription& model, std::vector<std::string> names) {
  for (std::size_t output = 0; output < names.size(); ++output) {
    check_layer_name(names[output]);
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(output);
    if (std::find(names.begin(), end, names[output]) == end) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("two outputs of the model are named \"{}\"; give one another name", names[output]));
  }
  model.output_names = std::move(names);
}

ModelDescription describe_chain(const Input& input, const std::vector<std::shared_ptr<const Layer>>& layers) {
  if (layers.size() > Model::kMaximumLayers) refuse_count(layers.size());
  check_input(input.shape());
  ModelDescription model;
  // The text of a chain has no name for its input. So it is always the same.
  model.inputs.push_back({.name = "input", .spec = {.shape = input.shape(), .dtype = input.dtype()}});
  std::vector<LayerName> names;
  for (const auto& layer : layers) {
    check_kind(*layer);
    names.push_back({.given = layer->name(), .kind = std::string(layer->kind())});
  }
  const std::vector<std::string> unique_names = name_layers(names);
  // A chain has one call for each layer, and each call takes the output of the call before it.
  CallInput last;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    model.layers.push_back({.name = unique_names[i], .layer = layers[i], .input_shape = {}, .output_shape = {}});
    // A layer that is listed twice is two layers.
    model.identities.push_back(std::make_shared<const int>(0));
    model.calls.push_back({.layer = i, .inputs = {last}});
    last = {.call = i, .index = 0};
  }
  model.output_sources = {last};
  return model;
}

Value input(const Shape& shape, const ValueOptions& options) {
  ValueNode node = {.kind = ValueNode::Kind::input};
  // Input checks the extents and the type.
  node.outputs = {{.shape = Input(shape, {.dtype = options.dtype}).shape(), .dtype = options.dtype}};
  node.name = options.name;
  return {make_node(std::move(node)), 0};
}

// A model of one call of one layer.
static ModelDescription model_of_call(const std::shared_ptr<const Layer>& layer, const std::vector<Value>& inputs) {
  ModelDescription model;
  ModelCall call = {.layer = 0, .inputs = {}};
  for (const Value& input : inputs) {
    call.inputs.push_back({.call = CallInput::kModelInput, .index = model.inputs.size()});
    model.inputs.push_back({.name = {}, .spec = input.spec()});
  }
  const std::string name = name_layers({{.given = layer->name(), .kind = std::string(layer->kind())}}).front();
  model.layers.push_back({.name = name, .layer = layer, .input_shape = {}, .output_shape = {}});
  model.calls.push_back(std::move(call));
  return model;
}

// A layer tells its shapes only when it is built. So a wrong shape is reported where the application calls the layer.
static std::vector<ValueSpec> specs_of_last_call(ModelDescription model) {
  lower(model);
  return model.calls.back().outputs;
}

static std::vector<Value> output_values(const std::shared_ptr<const ValueNode>& node) {
  std::vector<Value> outputs;
  for (std::size_t output = 0; output < node->outputs.size(); ++output) outputs.emplace_back(node, output);
  return outputs;
}

std::vector<Value> call_layer(std::shared_ptr<const Layer> layer, const std::vector<Value>& inputs) {
  check_kind(*layer);
  ValueNode node = {.kind = ValueNode::Kind::layer};
  // The specs alone are kept: the layer is lowered again with the whole model, in which it has weights.
  node.outputs = specs_of_last_call(model_of_call(layer, inputs));
  for (const Value& input : inputs) node.inputs.emplace_back(input);
  node.name = layer->name();
  node.identity = layer->identity();
  node.layer = std::move(layer);
  node.recomputed_segment = current_recomputed_segment();
  return output_values(make_node(std::move(node)));
}

Value weight_of(const Value& output, const std::string& name) {
  const ValueNode& maker = *output.node();
  const bool is_of_layer =
      maker.kind == ValueNode::Kind::layer && dynamic_cast<const OperationLayer*>(maker.layer.get()) == nullptr;
  if (!is_of_layer) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("weight_of() was asked for \"{}\" of a value of shape {} that no layer has made; pass what a "
                    "call of the layer returned, before functions of values",
                    name, output.shape().to_string()));
  }
  std::vector<Value> inputs;
  for (const MaybeValue& input : maker.inputs) inputs.push_back(*input);
  ModelDescription model = model_of_call(maker.layer, inputs);
  // The weight follows the call of its layer, which declares it.
  auto operation = std::make_shared<const WeightOperation>(name);
  model.layers.push_back({.name = "weight",
                          .layer = std::make_shared<const OperationLayer>(operation),
                          .input_shape = {},
                          .output_shape = {}});
  model.calls.push_back({.layer = 1, .inputs = {{.call = 0, .index = 0}}});
  ValueNode node = {.kind = ValueNode::Kind::operation, .inputs = {output}};
  node.outputs = specs_of_last_call(std::move(model));
  node.operation = std::move(operation);
  node.recomputed_segment = current_recomputed_segment();
  return {make_node(std::move(node)), 0};
}

[[noreturn]] static void refuse_type(const ModelArray& input, const std::string& model, DType given) {
  // The one conversion of types that a model can make is to f32.
  const bool can_cast = input.spec.dtype == DType::f32;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("input {} of model \"{}\" is of {}, but it was called with {}; {}describe the model with "
                          "input(shape, {{.dtype = DType::{}}})",
                          quoted_text(input.name, 100), model, holdfast::name(input.spec.dtype), holdfast::name(given),
                          can_cast ? "write cast(x, DType::f32), or " : "", holdfast::name(given)));
}

std::vector<Value> Model::call(const std::vector<Value>& inputs, const std::string& name) const {
  // The name stands before the names of the model's layers, as a folder does: "encoder/dense".
  check_layer_name(name);
  const ModelDescription& model = *description_;
  if (inputs.size() != model.inputs.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("model \"{}\" takes {} inputs, not {}; call it with a value for each of them", name,
                            model.inputs.size(), inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueSpec &given = inputs[i].spec(), &wanted = model.inputs[i].spec;
    // A value of bf16 is one of f32 before the first operation.
    const bool are_floats = computed_type(given.dtype) == DType::f32 && computed_type(wanted.dtype) == DType::f32;
    if (given.dtype != wanted.dtype && !are_floats) refuse_type(model.inputs[i], name, given.dtype);
    if (given.shape == wanted.shape && given.has_samples == wanted.has_samples) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("input {} of model \"{}\" has shape {}, but it was called with {}; reshape the value, or describe "
                    "the model for its shape",
                    quoted_text(model.inputs[i].name, 100), name, model.inputs[i].spec.shape.to_string(),
                    inputs[i].shape().to_string()));
  }
  std::vector<std::vector<Value>> outputs;  // of each call
  std::unordered_map<std::size_t, std::shared_ptr<const int>> segments;
  const auto segment_of = [&](const ModelCall& call) -> std::shared_ptr<const int> {
    // A segment around the call takes in the whole model. Otherwise each call of the model gets segments of its own.
    if (current_recomputed_segment()) return current_recomputed_segment();
    if (call.segment == 0) return nullptr;
    std::shared_ptr<const int>& segment = segments[call.segment];
    if (!segment) segment = std::make_shared<const int>(0);
    return segment;
  };
  const auto value_of = [&](const CallInput& source) {
    return source.call == CallInput::kModelInput ? inputs[source.index] : outputs[source.call][source.index];
  };
  for (const ModelCall& call : model.calls) {
    // The model was lowered for these inputs, so its specs hold here and nothing is lowered.
    ValueNode node = {.kind = ValueNode::Kind::layer, .outputs = call.outputs};
    for (const CallInput& input : call.inputs) node.inputs.emplace_back(value_of(input));
    node.name = name + "/" + model.layers[call.layer].name;
    // With the same identities, all calls of a model share its weights.
    node.identity = model.identities[call.layer];
    node.layer = model.layers[call.layer].layer;
    node.called_model = description_;
    node.is_frozen = model.layers[call.layer].is_frozen;
    node.recomputed_segment = segment_of(call);
    outputs.push_back(output_values(make_node(std::move(node))));
  }
  std::vector<Value> results;
  for (const CallInput& source : model.output_sources) results.push_back(value_of(source));
  return results;
}

}  // namespace holdfast
