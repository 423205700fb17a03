#include "holdfast/nn/flatten.h"

#include "nn/graph/config.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

Flatten::Flatten(const FlattenOptions& options) : LayerOf(options.name) {}

std::vector<Value> Flatten::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  // A view is enough: elements keep their order.
  return {reshape(input, Shape{input.shape().element_count()})};
}

void Flatten::write_config(ConfigWriter&) const {}

std::shared_ptr<const Layer> Flatten::from_config(const std::string& name, ConfigReader&) {
  return std::make_shared<const Flatten>(FlattenOptions{.name = name});
}

}  // namespace holdfast
