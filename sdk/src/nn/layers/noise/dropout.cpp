#include "holdfast/nn/dropout.h"

#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/noise/noise.h"
#include "nn/operations/checks.h"

namespace holdfast {

Dropout::Dropout(float rate, const DropoutOptions& options) : LayerOf(options.name), rate_(rate) {
  check_rate("Dropout", rate);
}

std::vector<Value> Dropout::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  return {builder.dropout(only_input(inputs), rate_)};
}

void Dropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> Dropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Dropout>(config.number("rate"), DropoutOptions{.name = name});
}

}  // namespace holdfast
