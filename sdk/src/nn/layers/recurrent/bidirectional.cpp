// Both directions compute their outputs in the order of the steps, so that nothing has to be turned around to put them
// together. In files the options of the layer stand next to those of Bidirectional. docs/decisions/layers.md

#include <fmt/format.h>

#include <array>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/noise/noise.h"
#include "nn/layers/recurrent/recurrent_parts.h"

namespace holdfast {

namespace {

// In the order of their enumerations. The names are those of files.
constexpr std::array<std::string_view, 4> kMergeModes = {"concat", "sum", "mul", "ave"};
constexpr std::array<std::string_view, 3> kKinds = {SimpleRNN::kKind, LSTM::kKind, GRU::kKind};

template <class Enumeration, std::size_t count>
Enumeration named(const std::string& text, const std::array<std::string_view, count>& names, std::string_view key) {
  for (std::size_t place = 0; place < count; ++place) {
    if (text == names[place]) return static_cast<Enumeration>(place);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" cannot be {}", key, quoted_text(text, 100)));
}

Value merged(MergeMode mode, const Value& forward, const Value& backward) {
  switch (mode) {
    case MergeMode::concat:
      return concatenate({forward, backward}, -1);
    case MergeMode::sum:
      return forward + backward;
    case MergeMode::mul:
      return forward * backward;
    case MergeMode::ave:
      return (forward + backward) / 2.0F;
  }
  HOLDFAST_ASSERT(false);
}

}  // namespace

Bidirectional::Bidirectional(const RecurrentSettings& settings, const BidirectionalOptions& options)
    : LayerOf(options.name), settings_(settings), merge_mode_(options.merge_mode) {
  check_settings("Bidirectional", settings_);
  if (!settings.options.go_backwards) return;
  throw Error(ErrorCode::invalid_argument,
              "Bidirectional takes the layer that goes forwards, and makes the other one; leave out go_backwards");
}

std::vector<Value> Bidirectional::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const RecurrentInputs given = recurrent_inputs(settings_, inputs, 2);
  RecurrentInputs forward_inputs = given;
  RecurrentInputs backward_inputs = given;
  // As in Keras, the states of the forward direction come first.
  if (!given.states.empty()) {
    const auto half = static_cast<std::ptrdiff_t>(state_count(settings_.kind));
    forward_inputs.states.assign(given.states.begin(), given.states.begin() + half);
    backward_inputs.states.assign(given.states.begin() + half, given.states.end());
  }
  const RecurrentOutputs forward =
      recurrent_outputs(builder, settings_, forward_inputs, {.prefix = "forward_layer/cell/"});
  // The forward direction draws its masks by number 0 and the seven numbers after kFirstFurtherMask. No mask of the
  // backward one may have a number of these, or both directions would drop the same elements.
  const RecurrentOutputs backward = recurrent_outputs(builder, settings_, backward_inputs,
                                                      {.prefix = "backward_layer/cell/",
                                                       .is_reversed = true,
                                                       .draw_number = kFirstFurtherMask,
                                                       .further_draws = kFirstFurtherMask + 8});
  // The directions skip a step at different times, so Keras gives zeros there, and not the states.
  const bool clears = settings_.options.return_sequences && given.mask.has_value();
  const auto cleared = [&](const Value& sequence) {
    if (!clears) return sequence;
    const Value kept = reshape(*given.mask, std::vector<std::int64_t>{sequence.shape()[0], 1});
    return where(kept, sequence, 0.0F);
  };
  std::vector<Value> outputs = {merged(merge_mode_, cleared(forward.output), cleared(backward.output))};
  if (!settings_.options.return_state) return outputs;
  // In the order in which build() takes initial states, so that one layer can pass them to the next.
  outputs.insert(outputs.end(), forward.states.begin(), forward.states.end());
  outputs.insert(outputs.end(), backward.states.begin(), backward.states.end());
  return outputs;
}

void Bidirectional::write_config(ConfigWriter& config) const {
  config.text("merge_mode", kMergeModes[static_cast<std::size_t>(merge_mode_)]);
  config.text("layer", kKinds[static_cast<std::size_t>(settings_.kind)]);
  write_settings(config, settings_);
}

std::shared_ptr<const Layer> Bidirectional::from_config(const std::string& name, ConfigReader& config) {
  const BidirectionalOptions options = {
      .merge_mode = named<MergeMode>(config.text("merge_mode"), kMergeModes, "merge_mode"), .name = name};
  const auto kind = named<RecurrentKind>(config.text("layer"), kKinds, "layer");
  return std::make_shared<const Bidirectional>(read_settings(kind, config), options);
}

}  // namespace holdfast
