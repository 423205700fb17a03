// Files name layers by their kinds. The kinds of Holdfast stand in one table: an application links a static library,
// and its linker drops sources that nothing refers to. So layers cannot register themselves.

#include "nn/layers/layer_registry.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>

#include "holdfast/base/error.h"
#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/advanced_activations.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/convolution_layers.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/depthwise_layers.h"
#include "holdfast/nn/dot.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/global_pooling.h"
#include "holdfast/nn/group_normalization.h"
#include "holdfast/nn/layer_normalization.h"
#include "holdfast/nn/max_pooling2d.h"
#include "holdfast/nn/merge_layers.h"
#include "holdfast/nn/noise_layers.h"
#include "holdfast/nn/normalization.h"
#include "holdfast/nn/padding_layers.h"
#include "holdfast/nn/pooling_layers.h"
#include "holdfast/nn/shape_layers.h"
#include "holdfast/nn/spatial_dropout.h"
#include "holdfast/nn/transposed_convolution_layers.h"
#include "holdfast/nn/up_sampling.h"
#include "nn/layers/operation_layer.h"

namespace holdfast {

namespace {

struct Registration {
  std::string_view kind;
  LayerFromConfig from_config;
};

// Kinds stand in files, so none of them may change.
constexpr std::array kLayers = {
    Registration{"Activation", &ActivationLayer::from_config},
    Registration{"Add", &Add::from_config},
    Registration{"AlphaDropout", &AlphaDropout::from_config},
    Registration{"Average", &Average::from_config},
    Registration{"AveragePooling1D", &AveragePooling1D::from_config},
    Registration{"AveragePooling2D", &AveragePooling2D::from_config},
    Registration{"AveragePooling3D", &AveragePooling3D::from_config},
    Registration{"BatchNormalization", &BatchNormalization::from_config},
    Registration{"Concatenate", &Concatenate::from_config},
    Registration{"Conv1D", &Conv1D::from_config},
    Registration{"Conv1DTranspose", &Conv1DTranspose::from_config},
    Registration{"Conv2D", &Conv2D::from_config},
    Registration{"Conv2DTranspose", &Conv2DTranspose::from_config},
    Registration{"Conv3D", &Conv3D::from_config},
    Registration{"Conv3DTranspose", &Conv3DTranspose::from_config},
    Registration{"Cropping1D", &Cropping1D::from_config},
    Registration{"Cropping2D", &Cropping2D::from_config},
    Registration{"Cropping3D", &Cropping3D::from_config},
    Registration{"Dense", &Dense::from_config},
    Registration{"DepthwiseConv1D", &DepthwiseConv1D::from_config},
    Registration{"DepthwiseConv2D", &DepthwiseConv2D::from_config},
    Registration{"Dot", &Dot::from_config},
    Registration{"Dropout", &Dropout::from_config},
    Registration{"ELU", &ELU::from_config},
    Registration{"Embedding", &Embedding::from_config},
    Registration{"Flatten", &Flatten::from_config},
    Registration{"GaussianDropout", &GaussianDropout::from_config},
    Registration{"GaussianNoise", &GaussianNoise::from_config},
    Registration{"GlobalAveragePooling", &GlobalAveragePooling::from_config},
    Registration{"GlobalMaxPooling", &GlobalMaxPooling::from_config},
    Registration{"GroupNormalization", &GroupNormalization::from_config},
    Registration{"LayerNormalization", &LayerNormalization::from_config},
    Registration{"LeakyReLU", &LeakyReLU::from_config},
    Registration{"MaxPooling1D", &MaxPooling1D::from_config},
    Registration{"MaxPooling2D", &MaxPooling2D::from_config},
    Registration{"MaxPooling3D", &MaxPooling3D::from_config},
    Registration{"Maximum", &Maximum::from_config},
    Registration{"Minimum", &Minimum::from_config},
    Registration{"Multiply", &Multiply::from_config},
    Registration{"Normalization", &Normalization::from_config},
    Registration{"Operation", &OperationLayer::from_config},
    Registration{"PReLU", &PReLU::from_config},
    Registration{"Permute", &Permute::from_config},
    Registration{"RMSNormalization", &RMSNormalization::from_config},
    Registration{"ReLU", &ReLU::from_config},
    Registration{"RepeatVector", &RepeatVector::from_config},
    Registration{"Rescaling", &Rescaling::from_config},
    Registration{"Reshape", &Reshape::from_config},
    Registration{"SeparableConv1D", &SeparableConv1D::from_config},
    Registration{"SeparableConv2D", &SeparableConv2D::from_config},
    Registration{"Softmax", &Softmax::from_config},
    Registration{"SpatialDropout1D", &SpatialDropout1D::from_config},
    Registration{"SpatialDropout2D", &SpatialDropout2D::from_config},
    Registration{"SpatialDropout3D", &SpatialDropout3D::from_config},
    Registration{"Subtract", &Subtract::from_config},
    Registration{"UpSampling1D", &UpSampling1D::from_config},
    Registration{"UpSampling2D", &UpSampling2D::from_config},
    Registration{"UpSampling3D", &UpSampling3D::from_config},
    Registration{"ZeroPadding1D", &ZeroPadding1D::from_config},
    Registration{"ZeroPadding2D", &ZeroPadding2D::from_config},
    Registration{"ZeroPadding3D", &ZeroPadding3D::from_config},
};

// The kinds of applications.
struct Registry {
  std::mutex mutex;
  std::map<std::string, LayerFromConfig, std::less<>> layers;  // guarded by mutex
};

Registry& registry() {
  // Applications register layers while their static objects are made, in any order. So the registry is made at its
  // first use.
  static Registry registry;
  return registry;
}

LayerFromConfig find_layer(std::string_view kind) {
  // Kinds of applications have a dot, so none of them hides one of the table.
  for (const Registration& registration : kLayers) {
    if (registration.kind == kind) return registration.from_config;
  }
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().layers.find(kind);
  return found == registry().layers.end() ? nullptr : found->second;
}

}  // namespace

bool register_layer(const std::string& kind, LayerFromConfig from_config) {
  // Later versions may bring more kinds, which must not meet those of applications.
  if (kind.find('.') == std::string::npos) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not a kind for a layer of an application: it needs a dot, as \"my_app.{}\"",
                            kind, kind));
  }
  const std::lock_guard lock(registry().mutex);
  // Two libraries of one application must not exchange their layers without a word.
  if (registry().layers.emplace(kind, from_config).second) return true;
  throw Error(ErrorCode::invalid_argument, fmt::format("a layer of kind \"{}\" is registered already", kind));
}

// A test walks through these kinds, and fails for a layer that is not compared with Keras.
std::vector<std::string_view> own_layer_kinds() {
  std::vector<std::string_view> kinds;
  for (const Registration& registration : kLayers) kinds.push_back(registration.kind);
  return kinds;
}

std::shared_ptr<const Layer> make_layer(const std::string& kind, const std::string& name, ConfigReader& config) {
  // The kind comes from a file, so the sentence shows only its beginning.
  if (const LayerFromConfig from_config = find_layer(kind)) return from_config(name, config);
  throw Error(
      ErrorCode::invalid_file,
      fmt::format("\"{}\" is not a kind of layer that this version knows; a layer of your own must be registered "
                  "with register_layer() before a file is read",
                  kind.substr(0, 100)));
}

}  // namespace holdfast
