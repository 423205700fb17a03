#include "holdfast/nn/merge_layers.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"

namespace holdfast {

// Functions of values broadcast their operands and refuse shapes that do not fit.
template <class Function>
static Value fold(std::span<const Value> inputs, const Function& function) {
  // A merge of one value does nothing, so a second one was forgotten.
  if (inputs.size() < 2) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("it takes two inputs or more, not {}; call it on all of them, as layer(x, y)", inputs.size()));
  }
  // Inputs are merged from the first to the last. The order of additions is a part of the bits.
  Value result = inputs[0];
  for (const Value& input : inputs.subspan(1)) result = function(result, input);
  return result;
}

Value Add::merge(std::span<const Value> inputs) {
  return fold(inputs, [](const Value& a, const Value& b) { return a + b; });
}

Value Subtract::merge(std::span<const Value> inputs) {
  if (inputs.size() == 2) return inputs[0] - inputs[1];
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it takes two inputs, not {}; call it again for each further one", inputs.size()));
}

Value Multiply::merge(std::span<const Value> inputs) {
  return fold(inputs, [](const Value& a, const Value& b) { return a * b; });
}

Value Average::merge(std::span<const Value> inputs) {
  // One division of the sum rounds less often than a division of each input.
  return Add::merge(inputs) / static_cast<float>(inputs.size());
}

Value Maximum::merge(std::span<const Value> inputs) {
  return fold(inputs, [](const Value& a, const Value& b) { return maximum(a, b); });
}

Value Minimum::merge(std::span<const Value> inputs) {
  return fold(inputs, [](const Value& a, const Value& b) { return minimum(a, b); });
}

Concatenate::Concatenate(const ConcatenateOptions& options) : LayerOf(options.name), axis_(options.axis) {}

std::vector<Value> Concatenate::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {concatenate({inputs.begin(), inputs.end()}, axis_)};
}

void Concatenate::write_config(ConfigWriter& config) const {
  config.integer("axis", axis_);
}

std::shared_ptr<const Layer> Concatenate::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Concatenate>(ConcatenateOptions{.axis = config.integer("axis"), .name = name});
}

}  // namespace holdfast
