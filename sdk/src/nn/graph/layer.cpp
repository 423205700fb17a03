#include "holdfast/nn/layer.h"

#include "nn/graph/layer_names.h"

namespace holdfast {

Layer::Layer(std::string name) : name_(std::move(name)), identity_(std::make_shared<const int>(0)) {
  // Copies share the identity, by which a model knows that they are one layer.
  if (!name_.empty()) check_layer_name(name_);
}

// A layer of an application may do anything to its input, so nothing is known by default.
std::optional<Activation> Layer::output_activation(std::optional<Activation>) const {
  return std::nullopt;
}
}  // namespace holdfast
