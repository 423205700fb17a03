#include "nn/layer_registry.h"

#include <array>

#include "holdfast/base/error.h"
#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/max_pooling2d.h"
#include "nn/model/operation_layer.h"

namespace holdfast {

namespace {

struct Registration {
  std::string_view kind;
  std::shared_ptr<const Layer> (*from_config)(const std::string& name, ConfigReader& config);
};

constexpr std::array kLayers = {
    Registration{"Activation", &ActivationLayer::from_config},
    Registration{"AveragePooling2D", &AveragePooling2D::from_config},
    Registration{"BatchNormalization", &BatchNormalization::from_config},
    Registration{"Conv2D", &Conv2D::from_config},
    Registration{"Dense", &Dense::from_config},
    Registration{"Dropout", &Dropout::from_config},
    Registration{"Flatten", &Flatten::from_config},
    Registration{"MaxPooling2D", &MaxPooling2D::from_config},
    Registration{"Operation", &OperationLayer::from_config},
};

}  // namespace

std::shared_ptr<const Layer> make_layer(const std::string& kind, const std::string& name, ConfigReader& config) {
  for (const Registration& registration : kLayers) {
    if (registration.kind == kind) return registration.from_config(name, config);
  }
  throw Error(ErrorCode::invalid_file,
              "\"" + kind.substr(0, 100) + "\" is not a kind of layer that this version knows");
}

}  // namespace holdfast
