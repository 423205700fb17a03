#include "holdfast/nn/layer.h"

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast {

static bool is_name_character(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_' || character == '-' || character == '.';
}

Layer::Layer(std::string name) : name_(std::move(name)) {
  constexpr std::size_t kMaximumLength = 100;
  const bool is_name = name_.size() <= kMaximumLength && !name_.starts_with('.') &&
                       std::all_of(name_.begin(), name_.end(), is_name_character);
  if (!is_name) {
    throw Error(ErrorCode::invalid_argument,
                "a layer's name has at most 100 letters, digits and characters of \"_-.\" and "
                "does not begin with a dot, unlike \"" +
                    name_.substr(0, kMaximumLength) + "\"");
  }
}

std::vector<WeightDescription> Layer::parameters(const Shape&) const {
  return {};
}
std::vector<WeightDescription> Layer::buffers(const Shape&) const {
  return {};
}
std::optional<Activation> Layer::output_activation(std::optional<Activation>) const {
  return std::nullopt;
}
std::size_t Layer::contribution_count(const Shape&) const {
  return 0;
}
void Layer::update_buffers(std::span<const float>, std::span<const std::span<float>>) const {}

void Layer::update_buffers_on(compute::DeviceKernels&, const float*, std::span<const std::span<float>> buffers) const {
  if (buffers.empty()) return;
  throw Error(ErrorCode::unsupported, "layer " + name() + " of kind " + std::string(kind()) +
                                          " updates its buffers on CPUs only; train on CPUs, or leave the layer out");
}

}  // namespace holdfast
