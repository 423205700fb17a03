#pragma once

// The layers that a model graph may name.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/graph/config.h"

namespace holdfast {

// Makes the layer of Layer::kind() `kind` from what its write_config() wrote. Throws Error{invalid_file or
// invalid_argument}.
std::shared_ptr<const Layer> make_layer(const std::string& kind, const std::string& name, ConfigReader& config);

// Throws Error{invalid_argument} for a layer of an application whose kind() has no dot: later versions may bring more
// kinds, and a file would name another layer.
void check_kind(const Layer& layer);

// The kinds of Holdfast, without those that applications have registered.
std::vector<std::string_view> own_layer_kinds();

}  // namespace holdfast
