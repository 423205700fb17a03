#include "holdfast/nn/layer.h"

#include "nn/layers/layer_names.h"

namespace holdfast {

Layer::Layer(std::string name) : name_(std::move(name)), identity_(std::make_shared<const int>(0)) {
  if (!name_.empty()) check_layer_name(name_);
}

std::optional<Activation> Layer::output_activation(std::optional<Activation>) const {
  return std::nullopt;
}
}  // namespace holdfast
