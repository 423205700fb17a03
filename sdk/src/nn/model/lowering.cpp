// Layers are built twice, for training and for inference. The first time declares the weights, in the order in which
// layers ask for them: this order numbers initial draws and places in files, and so is part of what bits depend on.
// docs/decisions/models.md

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "nn/graph/config.h"
#include "nn/graph/layer_names.h"
#include "nn/layers/noise/noise.h"
#include "nn/layers/operation_layer.h"
#include "nn/model/description.h"
#include "nn/model/differentiate.h"
#include "nn/model/recomputed_segments.h"
#include "nn/operations/operations.h"
#include "nn/operations/weight.h"

namespace holdfast {

namespace {

class Lowering {
 public:
  Lowering(ModelDescription& description, bool is_training) : description_(description), is_training_(is_training) {}
  Graph run();

  ModelDescription& description() { return description_; }
  bool is_training() const { return is_training_; }
  GraphBuilder& builder() { return builder_; }
  void add_statistics(BatchStatistics statistics) { statistics_.push_back(std::move(statistics)); }
  // The array of an entry in this graph.
  ArrayId array_of_weight(GraphArray::Source source, std::size_t entry, const Shape& shape);

 private:
  void lower_call(std::size_t call);
  void check_outputs(const ModelCall& call, const std::vector<ValueSpec>& specs) const;
  void check_followed_buffers() const;
  ArrayId array_of(const CallInput& source) const;
  Value weight_of_call(const ModelCall& call, const std::string& weight);

  ModelDescription& description_;
  const bool is_training_;
  GraphBuilder builder_;
  std::vector<std::vector<ArrayId>> call_outputs_;
  std::map<std::pair<GraphArray::Source, std::size_t>, ArrayId> weights_;
  std::vector<BatchStatistics> statistics_;
};

// What one call of a layer is built with.
class CallBuilder final : public LayerBuilder {
 public:
  CallBuilder(Lowering& lowering, std::size_t call) : lowering_(lowering), call_(call) {}

  Value parameter(const std::string& name, const Shape& shape, const Initializer& initializer,
                  const Fans& fans) override {
    // A buffer has neither gradient nor slots, and no replica sums it: what a frozen parameter needs.
    if (is_frozen()) return buffer_of({.initializer = initializer, .fans = fans, .is_parameter = true}, name, shape);
    ModelDescription& model = lowering_.description();
    return weight({GraphArray::Source::parameter, model.parameters, model.parameter_starts, layer().first_parameter,
                   layer().parameter_count},
                  name, shape, {.initializer = initializer, .fans = fans});
  }
  Value buffer(const std::string& name, const Shape& shape, const Initializer& initializer, const Fans& fans) override {
    return buffer_of({.initializer = initializer, .fans = fans, .is_parameter = false}, name, shape);
  }
  void regularize(const Value& parameter, const Regularizer& regularizer) override {
    // Also for a frozen layer, which may be trained later.
    regularizer.check(parameter.shape());
    // Nothing of a frozen layer changes, so a penalty would only add a constant to the loss.
    if (is_frozen()) return;
    const std::size_t entry = own_entry(GraphArray::Source::parameter, parameter);
    lowering_.description().parameter_starts[entry].regularizer = regularizer;
  }
  void constrain(const Value& parameter, const Constraint& constraint) override {
    // Also for a frozen layer, which may be trained later.
    constraint.check(parameter.shape());
    if (is_frozen()) return;
    const std::size_t entry = own_entry(GraphArray::Source::parameter, parameter);
    lowering_.description().parameter_starts[entry].constraint = constraint;
  }
  bool is_training() const override { return lowering_.is_training(); }
  bool is_frozen() const override {
    const ModelDescription& model = lowering_.description();
    return model.layers[model.calls[call_].layer].is_frozen;
  }
  void follow_batch(const Value& sums, const std::vector<Value>& buffers, float momentum) override {
    if (!is_training()) {
      throw Error(ErrorCode::invalid_argument,
                  "it calls follow_batch() in inference; call it only where is_training() is true");
    }
    // Written so that a NaN is refused.
    if (!(momentum >= 0 && momentum <= 1)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("follow_batch() needs a momentum from 0 to 1, not {}", momentum));
    }
    BatchStatistics statistics = {.sums = sums, .buffers = {}, .momentum = momentum};
    std::int64_t elements = 0;
    for (const Value& buffer : buffers) {
      statistics.buffers.push_back(own_entry(GraphArray::Source::buffer, buffer));
      elements += buffer.shape().element_count();
    }
    // update_buffers() reads so many floats, and with fewer it would read those of another layer.
    const bool fits = !sums.has_samples() && sums.dtype() == DType::f32 && sums.shape().element_count() == elements + 1;
    if (buffers.empty() || !fits) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("follow_batch() needs buffers, and sums of f32 without samples: one for each of the {} "
                              "elements of the buffers, then the number of rows; it was given {}{} of {}",
                              elements, sums.shape().to_string(), sums.has_samples() ? " for each sample" : "",
                              holdfast::name(sums.dtype())));
    }
    // What a frozen layer would add is dropped: its averages stay.
    if (!is_frozen()) lowering_.add_statistics(std::move(statistics));
  }
  Value dropout(const Value& x, float rate) override {
    check_rate("dropout()", rate);
    // Elements are scaled in training, so inference has nothing to do.
    if (!is_training() || rate == 0) return x;
    const DropoutSequence sequence = {.sequences_per_step = draw_sequences_per_step(),
                                      .sequence = further_sequence(draw_sequence(), dropouts_)};
    ++dropouts_;
    return holdfast::dropout(x, rate, sequence);
  }
  // In a chain, calls are layers, and files of chains were trained with their numbers.
  std::uint64_t draw_sequence() const override { return call_; }
  std::uint64_t draw_sequences_per_step() const override { return Model::kMaximumLayers; }

 private:
  // The entries of one kind of weights: those of the layer begin at `first`.
  struct Entries {
    GraphArray::Source source;
    ArenaLayout& layout;
    std::vector<WeightStart>& starts;
    std::size_t& first;
    std::size_t& count;
  };

  Value buffer_of(const WeightStart& start, const std::string& name, const Shape& shape) {
    ModelDescription& model = lowering_.description();
    return weight(
        {GraphArray::Source::buffer, model.buffers, model.buffer_starts, layer().first_buffer, layer().buffer_count},
        name, shape, start);
  }

  ModelLayer& layer() { return lowering_.description().layers[lowering_.description().calls[call_].layer]; }

  // The entry of a weight that this layer has asked for. Values of weights are bound to arrays, and these know their
  // entries.
  std::size_t own_entry(GraphArray::Source source, const Value& value) {
    const bool is_buffer = source == GraphArray::Source::buffer;
    const std::size_t first = is_buffer ? layer().first_buffer : layer().first_parameter;
    const std::size_t count = is_buffer ? layer().buffer_count : layer().parameter_count;
    const std::vector<GraphArray>& arrays = lowering_.builder().graph().arrays;
    const ValueNode& node = *value.node();
    if (node.kind == ValueNode::Kind::bound && node.array < arrays.size()) {
      const GraphArray& array = arrays[node.array];
      if (array.source == source && array.index >= first && array.index < first + count) return array.index;
    }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{0}() was given a value of shape {1} that is not a {2} of the layer; pass what {2}() "
                            "returned",
                            is_buffer ? "follow_batch" : "regularize", value.shape().to_string(),
                            is_buffer ? "buffer" : "parameter"));
  }

  Value weight(const Entries& entries, const std::string& name, const Shape& shape, const WeightStart& start) {
    // Weights of files are found by this name.
    const std::string full_name = layer().name + "/" + name;
    const std::size_t entry = find_or_declare(entries, full_name, name, shape, start);
    const ArrayId array = lowering_.array_of_weight(entries.source, entry, shape);
    return lowering_.builder().bind(array);
  }

  // Parameters and buffers lie in two arenas, but side by side in a file.
  void require_one_kind(const std::string& full_name, const std::string& name) {
    const ModelDescription& model = lowering_.description();
    for (const ArenaLayout* const layout : {&model.parameters, &model.buffers}) {
      if (std::ranges::find(layout->entries(), full_name, &ArenaEntry::name) == layout->entries().end()) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("it asks for a parameter and for a buffer \"{}\"; give one another name", name));
    }
  }

  std::size_t find_or_declare(const Entries& entries, const std::string& full_name, const std::string& name,
                              const Shape& shape, const WeightStart& start) {
    // The first call of a layer declares its weights. Further calls find them here, and so does the graph for
    // inference.
    for (std::size_t entry = entries.first; entry < entries.first + entries.count; ++entry) {
      const ArenaEntry& found = entries.layout.entries()[entry];
      if (found.name != full_name) continue;
      if (found.shape == shape) return entry;
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("its {} is {} in another call of the layer, but {} in this one; layers that share weights "
                      "need inputs of the same size",
                      name, found.shape.to_string(), shape.to_string()));
    }
    // The weights of a layer are neighbours, which a beginning and a count describe. Once another layer has declared
    // some, this layer cannot add more.
    if (entries.count == 0) entries.first = entries.layout.entries().size();
    if (entries.first + entries.count != entries.layout.entries().size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("it asks for \"{}\" in a later call only; build() must ask for the same weights in each "
                              "call, for training and for inference",
                              name));
    }
    check_weight_name(name);
    require_one_kind(full_name, name);
    start.initializer.check(shape);
    // With more elements, sizes in bytes could overflow when they are added up.
    const auto elements = static_cast<std::size_t>(shape.element_count());
    if (elements + entries.layout.float_count() > static_cast<std::size_t>(kMaximumElements)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("its {} {} makes a model of more than 2^40 weights", name, shape.to_string()));
    }
    entries.starts.push_back(start);
    ++entries.count;
    return entries.layout.add(full_name, shape);
  }

  Lowering& lowering_;
  const std::size_t call_;
  std::uint64_t dropouts_ = 0;  // that were asked for
};

ArrayId Lowering::array_of_weight(GraphArray::Source source, std::size_t entry, const Shape& shape) {
  // All calls of a layer use one array, so that the gradients of the calls are added up.
  const auto [place, is_new] = weights_.try_emplace({source, entry}, kNoArray);
  // A weight has no samples: it is the same for each of them.
  if (is_new) place->second = builder_.add_array(source, entry, {.shape = shape, .has_samples = false});
  return place->second;
}

// Arrays of a graph are f32 or i32. So the type that the application declared for an input is asked of the model.
std::string shapes_of(const ModelDescription& model, const ModelCall& call, const std::vector<Value>& values) {
  std::string text = values.size() == 1 ? "an input of shape " : "inputs of shapes ";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") + values[i].shape().to_string();
    const CallInput& input = call.inputs[i];
    const bool is_input = input.call == CallInput::kModelInput;
    if (values[i].dtype() == DType::f32) continue;
    text += fmt::format(" of {}", name(is_input ? model.inputs[input.index].spec.dtype : values[i].dtype()));
  }
  return text;
}

ArrayId Lowering::array_of(const CallInput& source) const {
  // The model's inputs are the first arrays of the graph.
  if (source.call == CallInput::kModelInput) return source.index;
  const std::vector<ArrayId>& outputs = call_outputs_[source.call];
  if (source.index < outputs.size()) return outputs[source.index];
  throw Error(ErrorCode::invalid_argument, fmt::format("call {} has {} outputs, so there is no output {}", source.call,
                                                       outputs.size(), source.index));
}

static std::string text_of(const std::vector<ValueSpec>& specs) {
  std::vector<std::string> texts;
  for (const ValueSpec& spec : specs) {
    texts.push_back(fmt::format("{} of {}", spec.shape.to_string(), name(spec.dtype)));
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

// Other layers, losses and files know one shape of each output. So both graphs must agree in it.
void Lowering::check_outputs(const ModelCall& call, const std::vector<ValueSpec>& specs) const {
  if (specs.empty()) throw Error(ErrorCode::invalid_argument, "its build() returned no value; it needs an output");
  // The graph for training is made first.
  if (is_training_ || call.outputs == specs) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("its output is {} in training but {} in inference; build() must return the same shapes and "
                          "types in both",
                          text_of(call.outputs), text_of(specs)));
}

// The name of the weight that a layer hands on; null for all other layers.
const std::string* weight_named_by(const Layer& layer) {
  const auto* const of_operation = dynamic_cast<const OperationLayer*>(&layer);
  const auto* const operation =
      of_operation == nullptr ? nullptr : dynamic_cast<const WeightOperation*>(&of_operation->operation());
  return operation == nullptr ? nullptr : &operation->weight();
}

// All uses of a weight read its one array, so that their gradients are added up like those of two calls of a layer.
Value Lowering::weight_of_call(const ModelCall& call, const std::string& weight) {
  const bool is_of_call = call.inputs.size() == 1 && call.inputs.front().call != CallInput::kModelInput;
  if (!is_of_call) {
    throw Error(ErrorCode::invalid_argument, "a weight is that of the layer which made one value; an input has none");
  }
  const ModelLayer& owner = description_.layers[description_.calls[call.inputs.front().call].layer];
  std::vector<std::string> names;
  const auto find = [&](GraphArray::Source source, const ArenaLayout& layout, std::size_t first, std::size_t count) {
    std::optional<Value> found;
    for (std::size_t entry = first; entry < first + count; ++entry) {
      const ArenaEntry& own = layout.entries()[entry];
      names.push_back(fmt::format("\"{}\"", own.name.substr(owner.name.size() + 1)));
      if (own.name == owner.name + "/" + weight) found = builder_.bind(array_of_weight(source, entry, own.shape));
    }
    return found;
  };
  // The parameters of a frozen layer are among the buffers.
  const auto parameter =
      find(GraphArray::Source::parameter, description_.parameters, owner.first_parameter, owner.parameter_count);
  const auto buffer = find(GraphArray::Source::buffer, description_.buffers, owner.first_buffer, owner.buffer_count);
  if (parameter || buffer) return parameter ? *parameter : *buffer;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("layer \"{}\" ({}) has no weight {}; {}", owner.name, owner.layer->kind(), quoted_text(weight, 100),
                  names.empty() ? "it has no weights" : fmt::format("it has {}", fmt::join(names, ", "))));
}

// Layers of Holdfast compute with samples: their kernels may count on them. Layers of applications are made of
// functions of values, which take weights too.
void check_samples(const Layer& layer, const std::vector<Value>& inputs) {
  const bool takes_weights = layer.kind() == "Operation" || layer.kind().find('.') != std::string_view::npos;
  if (takes_weights || std::ranges::all_of(inputs, &Value::has_samples)) return;
  throw Error(ErrorCode::invalid_argument,
              "it takes values of samples, and not a weight; use functions of values, such as matmul(), or a layer of "
              "your own");
}

void Lowering::lower_call(std::size_t index) {
  ModelCall& call = description_.calls[index];
  ModelLayer& layer = description_.layers[call.layer];
  std::vector<Value> inputs;
  for (const CallInput& input : call.inputs) inputs.push_back(builder_.bind(array_of(input)));
  // What the layer appends belongs to the segment of its call.
  builder_.set_segment(call.segment);
  try {
    CallBuilder builder(*this, index);
    std::vector<ArrayId> outputs;
    std::vector<ValueSpec> specs;
    check_samples(*layer.layer, inputs);
    const std::string* const weight = weight_named_by(*layer.layer);
    // What is computed of weights alone has no samples either.
    const bool may_lack_samples =
        weight != nullptr || (!inputs.empty() && std::ranges::none_of(inputs, &Value::has_samples));
    for (const Value& output :
         weight != nullptr ? std::vector{weight_of_call(call, *weight)} : layer.layer->build(builder, inputs)) {
      if (!output.has_samples() && !may_lack_samples) {
        throw Error(ErrorCode::invalid_argument, "its output does not depend on the samples; compute it from an input");
      }
      if (output.shape().element_count() > kMaximumElements) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("its output {} has more than 2^40 elements", output.shape().to_string()));
      }
      outputs.push_back(builder_.append(output));
      specs.push_back(output.spec());
    }
    check_outputs(call, specs);
    call_outputs_.push_back(std::move(outputs));
    call.outputs = std::move(specs);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    // A layer knows neither the name that the model chose for it nor all of its inputs. So the sentence gets both here.
    const auto* const own = dynamic_cast<const Error*>(&error);
    throw Error(own == nullptr ? ErrorCode::invalid_argument : own->code(),
                fmt::format("layer \"{}\" ({}) cannot take {}: {}", layer.name, layer.layer->kind(),
                            shapes_of(description_, call, inputs), error.what()));
  }
  // The summary shows the shapes of the first call of a layer.
  if (layer.input_shape.rank() == 0 && !inputs.empty()) layer.input_shape = inputs[0].shape();
  if (layer.output_shape.rank() == 0) layer.output_shape = call.outputs[0].shape;
}

}  // namespace

// Elements of 4 bytes: what a shard's samples are converted to before the first operation.
DType computed_type(DType declared) {
  return declared == DType::f32 || declared == DType::bf16 ? DType::f32 : DType::i32;
}

namespace {

// Shards of one step run at different times, so a buffer that changes with each step must not reach their results.
void Lowering::check_followed_buffers() const {
  std::set<std::size_t> followed;
  for (const BatchStatistics& statistics : statistics_) {
    followed.insert(statistics.buffers.begin(), statistics.buffers.end());
  }
  for (const GraphOperation& operation : builder_.graph().operations) {
    for (const ArrayId input : operation.inputs) {
      if (input == kNoArray) continue;
      const GraphArray& array = builder_.graph().arrays[input];
      if (array.source != GraphArray::Source::buffer || !followed.contains(array.index)) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("buffer \"{}\" follows the batch, so training must not read it; use it only where "
                              "is_training() is false",
                              description_.buffers.entries()[array.index].name));
    }
  }
}

Graph Lowering::run() {
  for (std::size_t input = 0; input < description_.inputs.size(); ++input) {
    // Inputs are the first arrays, and array_of() relies on it.
    ValueSpec spec = description_.inputs[input].spec;
    spec.dtype = computed_type(spec.dtype);
    builder_.add_array(GraphArray::Source::input, input, spec);
  }
  for (std::size_t call = 0; call < description_.calls.size(); ++call) lower_call(call);
  for (const CallInput& output : description_.output_sources) builder_.graph().outputs.push_back(array_of(output));
  builder_.graph().first_backward = builder_.graph().operations.size();
  builder_.set_segment(0);
  if (is_training_) {
    check_followed_buffers();
    // Recomputation must know which arrays the backward pass reads, so it comes last.
    differentiate(builder_, description_.parameters.entries().size(), statistics_);
    recompute_segments(builder_.graph());
  }
  return std::move(builder_.graph());
}

}  // namespace

// An output is called like its layer. A layer may make several, which get numbers as layers of one kind do: results are
// logged by these names, and targets are found by them.
static void choose_output_names(ModelDescription& description) {
  std::set<std::string> taken;
  for (const ModelArray& output : description.outputs) taken.insert(output.name);
  std::set<std::string> given;
  for (std::size_t output = 0; output < description.outputs.size(); ++output) {
    std::string& name = description.outputs[output].name;
    if (!description.output_names.empty()) {
      name = description.output_names[output];
    } else if (!given.insert(name).second) {
      std::size_t number = 1;
      // Another layer may be called "dense_1", and keeps its name.
      while (!taken.insert(fmt::format("{}_{}", name, number)).second) ++number;
      name = fmt::format("{}_{}", name, number);
    }
  }
}

// What stands outside of layers is the user's own line, as in minimum(y, INFINITY). Layers of an application may be of
// a kind that no file can hold, and such a model trains nevertheless.
static void require_writable_operations(const ModelDescription& description) {
  for (const ModelLayer& layer : description.layers) {
    if (dynamic_cast<const OperationLayer*>(layer.layer.get()) == nullptr) continue;
    JsonConfigWriter unused;
    layer.layer->write_config(unused);
  }
}

void lower(ModelDescription& description) {
  description.training = Lowering(description, true).run();
  // A weight that only inference asks for would never be trained.
  const std::size_t parameters = description.parameters.entries().size();
  const std::size_t buffers = description.buffers.entries().size();
  description.inference = Lowering(description, false).run();
  for (const auto& [layout, count] :
       {std::pair(&description.parameters, parameters), {&description.buffers, buffers}}) {
    if (layout->entries().size() == count) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("build() of a layer asks for the weight \"{}\" in inference and not in training; it must ask "
                    "for the same ones in both",
                    layout->entries()[count].name));
  }
  require_writable_operations(description);
  std::vector<std::string> names;
  for (const ArenaLayout* const layout : {&description.parameters, &description.buffers}) {
    for (const ArenaEntry& entry : layout->entries()) names.push_back(entry.name);
  }
  check_weight_paths(names);
  for (const CallInput& output : description.output_sources) {
    // A batch is cut into samples, and an output that has none could not be cut.
    if (output.call != CallInput::kModelInput && !description.calls[output.call].outputs[output.index].has_samples) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("an output of the model is made of weights alone, by layer \"{}\"; compute it from an "
                              "input",
                              description.layers[description.calls[output.call].layer].name));
    }
    // A model may hand on an input as it is.
    if (output.call == CallInput::kModelInput) {
      description.outputs.push_back(description.inputs[output.index]);
    } else {
      const ModelCall& call = description.calls[output.call];
      description.outputs.push_back({description.layers[call.layer].name, call.outputs[output.index]});
    }
  }
  choose_output_names(description);
}

std::shared_ptr<const ModelDescription> complete(ModelDescription description) {
  lower(description);
  return std::make_shared<const ModelDescription>(std::move(description));
}

}  // namespace holdfast
