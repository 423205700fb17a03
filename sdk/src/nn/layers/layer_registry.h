#pragma once

// The layers that a model graph may name.

#include <memory>
#include <string>

#include "nn/graph/config.h"

namespace holdfast {

// Makes the layer of Layer::kind() `kind` from what its write_config() wrote. Throws Error{invalid_file or
// invalid_argument}.
std::shared_ptr<const Layer> make_layer(const std::string& kind, const std::string& name, ConfigReader& config);

}  // namespace holdfast
