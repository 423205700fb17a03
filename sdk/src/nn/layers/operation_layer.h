#pragma once

// An operation that an application wrote between layers, as `a + b`, seen as a layer: models and files hold layers.

#include "holdfast/nn/layer.h"
#include "nn/graph/operation.h"

namespace holdfast {

class ConfigReader;

class OperationLayer final : public LayerOf<OperationLayer> {
 public:
  // An empty name lets the model choose one. An operation that stands in no file makes write_config() throw.
  explicit OperationLayer(std::shared_ptr<const Operation> operation, const std::string& name = {})
      : LayerOf(name), operation_(std::move(operation)) {}
  // Throws Error{invalid_file or invalid_argument} for a name that no operation of a file has, and for wrong options.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Operation"; }
  // What a model names it after: "add".
  std::string label() const { return operation_->name(); }
  const Operation& operation() const { return *operation_; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  const std::shared_ptr<const Operation> operation_;
};

}  // namespace holdfast
