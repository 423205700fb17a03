#include "nn/layers/operation_layer.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/graph/config.h"
#include "nn/operations/operation_registry.h"

namespace holdfast {

std::vector<Value> OperationLayer::build(LayerBuilder&, std::span<const Value> inputs) const {
  // A file may call an operation with any inputs. outputs() relies on their number.
  if (!operation_->takes_inputs(inputs.size())) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} does not take {} inputs", operation_->name(), inputs.size()));
  }
  return apply(operation_, {inputs.begin(), inputs.end()});
}

void OperationLayer::write_config(ConfigWriter& config) const {
  // Options of the operation follow its name in the same object.
  config.text("operation", operation_->name());
  operation_->write_config(config);
}

std::shared_ptr<const Layer> OperationLayer::from_config(const std::string& name, ConfigReader& config) {
  const std::string operation = config.text("operation");
  return std::make_shared<const OperationLayer>(make_operation(operation, config), name);
}

}  // namespace holdfast
