// Files name layers by their kinds. The kinds of Holdfast stand in one table: an application links a static library,
// and its linker drops sources that nothing refers to. So layers cannot register themselves.

#include "nn/layers/layer_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <typeinfo>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/adaptive_pooling.h"
#include "holdfast/nn/advanced_activations.h"
#include "holdfast/nn/attention.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/convolution_layers.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/depthwise_layers.h"
#include "holdfast/nn/dot.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/einsum_dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/global_pooling.h"
#include "holdfast/nn/group_normalization.h"
#include "holdfast/nn/layer_normalization.h"
#include "holdfast/nn/max_pooling2d.h"
#include "holdfast/nn/merge_layers.h"
#include "holdfast/nn/multi_head_attention.h"
#include "holdfast/nn/noise_layers.h"
#include "holdfast/nn/normalization.h"
#include "holdfast/nn/padding_layers.h"
#include "holdfast/nn/pooling_layers.h"
#include "holdfast/nn/position_embedding.h"
#include "holdfast/nn/recurrent_layers.h"
#include "holdfast/nn/shape_layers.h"
#include "holdfast/nn/spatial_dropout.h"
#include "holdfast/nn/transposed_convolution_layers.h"
#include "holdfast/nn/unit_normalization.h"
#include "holdfast/nn/up_sampling.h"
#include "nn/layers/operation_layer.h"

namespace holdfast {

namespace {

// Plain pointers, so that the table is a constant: it is there before any static object of an application is made.
struct Registration {
  std::string_view kind;
  LayerFromConfig from_config;
  bool (*is_of_class)(const Layer& layer);
};

// The class is compared exactly: a class that derives from a layer of Holdfast would be read back as its base.
template <class OwnLayer>
constexpr Registration registration(std::string_view kind) {
  return {kind, &OwnLayer::from_config, [](const Layer& layer) { return typeid(layer) == typeid(OwnLayer); }};
}

// Kinds stand in files, so none of them may change. They stand in the order of their bytes.
constexpr std::array kLayers = {
    registration<ActivationLayer>("Activation"),
    registration<AdaptiveAveragePooling>("AdaptiveAveragePooling"),
    registration<AdaptiveMaxPooling>("AdaptiveMaxPooling"),
    registration<Add>("Add"),
    registration<AdditiveAttention>("AdditiveAttention"),
    registration<AlphaDropout>("AlphaDropout"),
    registration<Attention>("Attention"),
    registration<Average>("Average"),
    registration<AveragePooling1D>("AveragePooling1D"),
    registration<AveragePooling2D>("AveragePooling2D"),
    registration<AveragePooling3D>("AveragePooling3D"),
    registration<BatchNormalization>("BatchNormalization"),
    registration<Bidirectional>("Bidirectional"),
    registration<Concatenate>("Concatenate"),
    registration<Conv1D>("Conv1D"),
    registration<Conv1DTranspose>("Conv1DTranspose"),
    registration<Conv2D>("Conv2D"),
    registration<Conv2DTranspose>("Conv2DTranspose"),
    registration<Conv3D>("Conv3D"),
    registration<Conv3DTranspose>("Conv3DTranspose"),
    registration<Cropping1D>("Cropping1D"),
    registration<Cropping2D>("Cropping2D"),
    registration<Cropping3D>("Cropping3D"),
    registration<Dense>("Dense"),
    registration<DepthwiseConv1D>("DepthwiseConv1D"),
    registration<DepthwiseConv2D>("DepthwiseConv2D"),
    registration<Dot>("Dot"),
    registration<Dropout>("Dropout"),
    registration<ELU>("ELU"),
    registration<EinsumDense>("EinsumDense"),
    registration<Embedding>("Embedding"),
    registration<Flatten>("Flatten"),
    registration<GRU>("GRU"),
    registration<GaussianDropout>("GaussianDropout"),
    registration<GaussianNoise>("GaussianNoise"),
    registration<GlobalAveragePooling>("GlobalAveragePooling"),
    registration<GlobalMaxPooling>("GlobalMaxPooling"),
    registration<GroupNormalization>("GroupNormalization"),
    registration<GroupQueryAttention>("GroupQueryAttention"),
    registration<LSTM>("LSTM"),
    registration<LayerNormalization>("LayerNormalization"),
    registration<LeakyReLU>("LeakyReLU"),
    registration<MaxPooling1D>("MaxPooling1D"),
    registration<MaxPooling2D>("MaxPooling2D"),
    registration<MaxPooling3D>("MaxPooling3D"),
    registration<Maximum>("Maximum"),
    registration<Minimum>("Minimum"),
    registration<MultiHeadAttention>("MultiHeadAttention"),
    registration<Multiply>("Multiply"),
    registration<Normalization>("Normalization"),
    registration<OperationLayer>("Operation"),
    registration<PReLU>("PReLU"),
    registration<Permute>("Permute"),
    registration<PositionEmbedding>("PositionEmbedding"),
    registration<RMSNormalization>("RMSNormalization"),
    registration<ReLU>("ReLU"),
    registration<RepeatVector>("RepeatVector"),
    registration<Rescaling>("Rescaling"),
    registration<Reshape>("Reshape"),
    registration<ReversibleEmbedding>("ReversibleEmbedding"),
    registration<RotaryEmbedding>("RotaryEmbedding"),
    registration<SeparableConv1D>("SeparableConv1D"),
    registration<SeparableConv2D>("SeparableConv2D"),
    registration<SimpleRNN>("SimpleRNN"),
    registration<SinePositionEncoding>("SinePositionEncoding"),
    registration<Softmax>("Softmax"),
    registration<SpatialDropout1D>("SpatialDropout1D"),
    registration<SpatialDropout2D>("SpatialDropout2D"),
    registration<SpatialDropout3D>("SpatialDropout3D"),
    registration<Subtract>("Subtract"),
    registration<UnitNormalization>("UnitNormalization"),
    registration<UpSampling1D>("UpSampling1D"),
    registration<UpSampling2D>("UpSampling2D"),
    registration<UpSampling3D>("UpSampling3D"),
    registration<ZeroPadding1D>("ZeroPadding1D"),
    registration<ZeroPadding2D>("ZeroPadding2D"),
    registration<ZeroPadding3D>("ZeroPadding3D"),
};

// The kinds of applications. Any thread may make a layer of a file while another one registers one, so the map has a
// lock.
struct Registry {
  std::mutex mutex;
  // std::less<> finds a std::string_view without a copy of the text.
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
  // A pointer is returned, and called without the lock: a from_config() may make further layers, which search as well.
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
  // Two libraries of one application must not exchange their layers without a word. The result is always true, so that
  // the initializer of a static object can make the call.
  if (registry().layers.emplace(kind, from_config).second) return true;
  throw Error(ErrorCode::invalid_argument, fmt::format("a layer of kind \"{}\" is registered already", kind));
}

void check_kind(const Layer& layer) {
  const std::string_view kind = layer.kind();
  // Whether a kind of an application is registered shows only when a file is read.
  if (kind.find('.') != std::string_view::npos) return;
  const auto own = std::ranges::find(kLayers, kind, &Registration::kind);
  if (own != kLayers.end() && own->is_of_class(layer)) return;
  // Files name the kind alone. A reader would make Holdfast's layer of it, or find none.
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("a layer of an application has the kind \"{}\", {}; let its kind() return a name with a dot, "
                  "as \"my_app.{}\", and give register_layer() the same",
                  kind, own != kLayers.end() ? "which is that of a layer of Holdfast" : "which has no dot", kind));
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
  throw Error(ErrorCode::invalid_file,
              fmt::format("{} is not a kind of layer that this version knows; a layer of your own must be registered "
                          "with register_layer() before a file is read",
                          quoted_text(kind, 100)));
}

}  // namespace holdfast
