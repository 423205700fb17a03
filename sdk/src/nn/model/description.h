#pragma once

// What a Model is, made once and shared by its copies: its layers and their calls, the layouts of its weights, and the
// graphs that its layers were lowered to.

#include <string>
#include <vector>

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/model.h"
#include "nn/graph/graph.h"
#include "nn/plan/memory_plan.h"

namespace holdfast {

// What a call takes: an input of the model, or an output of an earlier call.
struct CallInput {
  static constexpr std::size_t kModelInput = std::numeric_limits<std::size_t>::max();

  std::size_t call = kModelInput;
  std::size_t index = 0;  // of the input, or of the call's output

  friend bool operator==(const CallInput&, const CallInput&) = default;
};

struct ModelCall {
  std::size_t layer = 0;
  std::vector<CallInput> inputs;
  std::vector<ValueSpec> outputs{};  // set by lowering
  std::size_t segment = 0;           // calls with the same number are recomputed together; 0: the call is not
};

// Where a weight begins.
struct WeightStart {
  Initializer initializer;
  Fans fans;
  Regularizer regularizer{};
  Constraint constraint{};
  bool is_parameter = true;  // of a buffer: it is the parameter of a frozen layer
};

// An entry of one of the two arenas of weights.
struct WeightPlace {
  bool is_in_buffers = false;
  std::size_t entry = 0;
};

struct ModelDescription {
  // Set by describe(), describe_chain() or the reader of a text.
  std::vector<ModelArray> inputs;
  std::vector<ModelLayer> layers;
  std::vector<std::shared_ptr<const int>> identities;  // of layers
  std::vector<ModelCall> calls;
  std::vector<CallInput> output_sources;
  std::vector<std::string> output_names{};  // empty, or one for each output; files hold it where it was given

  // Set by lower().
  std::vector<ModelArray> outputs{};
  ArenaLayout parameters{};
  ArenaLayout buffers{};
  std::vector<WeightStart> parameter_starts{};
  std::vector<WeightStart> buffer_starts{};
  Graph training{};
  Graph inference{};

  bool is_chain() const;
  // All parameters, those of frozen layers too, in the order that they have in a model without frozen layers.
  std::vector<WeightPlace> parameters_in_order() const;
  const ArenaLayout& layout_of(const WeightPlace& place) const { return place.is_in_buffers ? buffers : parameters; }
  // The layers and calls alone, to be lowered anew.
  ModelDescription without_graphs() const;
  // How many floats a shard adds to the statistics of the batch: those of all arrays of updates.
  std::size_t contribution_count() const;
  // What a plan for so many samples is made of. Refers to this description.
  MemoryOptions memory_options(std::int64_t samples) const {
    return {.samples = samples, .inputs = inputs.size(), .parameters = parameters, .buffers = buffers};
  }
};

// What an input of this type is in a graph: f32 or i32, elements of 4 bytes. A shard's samples are converted before the
// first operation.
DType computed_type(DType declared);

// Builds the layers and completes the description. Throws Error{invalid_argument} that names the layer.
void lower(ModelDescription& description);

// The model that a description without outputs, layouts and graphs stands for.
std::shared_ptr<const ModelDescription> complete(ModelDescription description);

}  // namespace holdfast
