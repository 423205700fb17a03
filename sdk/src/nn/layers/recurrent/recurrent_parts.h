#pragma once

// A recurrent layer as functions of values, which one layer has once and Bidirectional twice.

#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"
#include "holdfast/nn/recurrent_layers.h"
#include "nn/graph/value_node.h"
#include "nn/layers/noise/noise.h"

namespace holdfast {

// How many arrays a state has: 2 with the cell of an lstm.
std::size_t state_count(RecurrentKind kind);

// One direction of a layer.
struct RecurrentDirection {
  std::string prefix = "cell/";   // of the names of its weights
  bool is_reversed = false;       // from the last step to the first; a sequence stays in the order of the steps
  std::uint64_t draw_number = 0;  // of its dropout, apart from that of the other direction
  // The first of seven numbers for further draws: inputs of the gates after the first, and states of all gates.
  std::uint64_t further_draws = kFirstFurtherMask + 1;
};

struct RecurrentInputs {
  Value x;                    // [steps, width]
  std::vector<Value> states;  // none, or as many as state_count()
  MaybeValue mask;            // [steps]
};

struct RecurrentOutputs {
  Value output;  // the sequence or the last output, as the options say
  std::vector<Value> states;
};

// x, then `directions` times the states or none, then perhaps a mask. Throws Error{invalid_argument} for other inputs.
RecurrentInputs recurrent_inputs(const RecurrentSettings& settings, std::span<const Value> inputs,
                                 std::size_t directions);
RecurrentOutputs recurrent_outputs(LayerBuilder& builder, const RecurrentSettings& settings,
                                   const RecurrentInputs& inputs, const RecurrentDirection& direction);

// Throws Error{invalid_argument}, naming the layer class, for settings that no layer has.
void check_settings(std::string_view kind, const RecurrentSettings& settings);
void write_settings(ConfigWriter& config, const RecurrentSettings& settings);
RecurrentSettings read_settings(RecurrentKind kind, ConfigReader& config);

}  // namespace holdfast
