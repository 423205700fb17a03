#pragma once

// An operation that an application wrote between layers, as `a + b`, seen as a layer: models and files hold layers.

#include "holdfast/nn/layer.h"
#include "nn/graph/operation.h"

namespace holdfast {

class ConfigReader;

class OperationLayer final : public LayerOf<OperationLayer> {
 public:
  explicit OperationLayer(std::shared_ptr<const Operation> operation, const std::string& name = {})
      : LayerOf(name), operation_(std::move(operation)) {}
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Operation"; }
  // What a model names it after: "add".
  std::string label() const { return operation_->name(); }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  const std::shared_ptr<const Operation> operation_;
};

}  // namespace holdfast
