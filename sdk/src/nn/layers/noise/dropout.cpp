#include "holdfast/nn/dropout.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

Dropout::Dropout(float rate, const DropoutOptions& options) : LayerOf(options.name), rate_(rate) {
  // Elements that are kept are divided by 1 - rate, which must not be 0.
  if (rate >= 0 && rate < 1) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("Dropout needs a rate from 0 to below 1, not {}", rate));
}

std::vector<Value> Dropout::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // Elements are scaled in training, so inference has nothing to do.
  if (!builder.is_training() || rate_ == 0) return {input};
  // Each call of a layer draws a sequence of its own in each step.
  return {dropout(input, rate_,
                  {.sequences_per_step = builder.draw_sequences_per_step(), .sequence = builder.draw_sequence()})};
}

void Dropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> Dropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Dropout>(config.number("rate"), DropoutOptions{.name = name});
}

}  // namespace holdfast
