#include "nn/model/operation_layer.h"

#include "nn/config.h"
#include "nn/operations/operation_registry.h"

namespace holdfast {

std::vector<Value> OperationLayer::build(LayerBuilder&, std::span<const Value> inputs) const {
  return apply(operation_, {inputs.begin(), inputs.end()});
}

void OperationLayer::write_config(ConfigWriter& config) const {
  config.text("operation", operation_->name());
  operation_->write_config(config);
}

std::shared_ptr<const Layer> OperationLayer::from_config(const std::string& name, ConfigReader& config) {
  const std::string operation = config.text("operation");
  return std::make_shared<const OperationLayer>(make_operation(operation, config), name);
}

}  // namespace holdfast
