// Most layers have the same options under the same names on both sides. Keras has more of them, so each that Holdfast
// lacks must have its default, or else the model would compute something else without a word. What only matters to
// training, such as a regularizer, becomes a note. See docs/decisions/exchange.md.

#include "keras/keras_layer_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

using Steps = std::vector<HoldfastStep>;

constexpr std::string_view kKnownClasses =
    "Activation, Add, Average, AveragePooling2D, BatchNormalization, Concatenate, Conv2D, Cropping2D, Dense, Dropout, "
    "Flatten, GlobalAveragePooling1D to 3D, GlobalMaxPooling1D to 3D, Identity, InputLayer, LayerNormalization, "
    "MaxPooling2D, Maximum, Minimum, Multiply, Permute, ReLU, RepeatVector, Rescaling, Reshape, RMSNormalization, "
    "Softmax, Subtract, UpSampling2D, ZeroPadding2D, and nested models of these";

struct NamePair {
  std::string_view keras;
  std::string_view holdfast;
};

constexpr std::array kActivations = {NamePair{"linear", "linear"},   NamePair{"relu", "relu"},
                                     NamePair{"tanh", "tanh"},       NamePair{"sigmoid", "sigmoid"},
                                     NamePair{"softmax", "softmax"}, NamePair{"gelu", "gelu"}};
// Activations that are functions of their own in Holdfast.
constexpr std::array kFunctions = {NamePair{"silu", "silu"}, NamePair{"swish", "silu"},
                                   NamePair{"softplus", "softplus"}, NamePair{"exponential", "exponential"}};
constexpr std::array kInitializers = {NamePair{"GlorotUniform", "glorot_uniform"},
                                      NamePair{"GlorotNormal", "glorot_normal"},
                                      NamePair{"HeUniform", "he_uniform"},
                                      NamePair{"HeNormal", "he_normal"},
                                      NamePair{"Zeros", "zeros"},
                                      NamePair{"Ones", "ones"},
                                      NamePair{"glorot_uniform", "glorot_uniform"},
                                      NamePair{"glorot_normal", "glorot_normal"},
                                      NamePair{"he_uniform", "he_uniform"},
                                      NamePair{"he_normal", "he_normal"},
                                      NamePair{"zeros", "zeros"},
                                      NamePair{"ones", "ones"}};
// Functions of elements in keras.ops. The number of arguments is that of the call.
constexpr std::array kElementOperations = {NamePair{"Add", "add"},           NamePair{"Subtract", "subtract"},
                                           NamePair{"Multiply", "multiply"}, NamePair{"Divide", "divide"},
                                           NamePair{"TrueDivide", "divide"}, NamePair{"Power", "power"},
                                           NamePair{"Maximum", "maximum"},   NamePair{"Minimum", "minimum"},
                                           NamePair{"Negative", "negative"}, NamePair{"Absolute", "absolute"},
                                           NamePair{"Abs", "absolute"},      NamePair{"Square", "square"},
                                           NamePair{"Sqrt", "square_root"},  NamePair{"Rsqrt", "reciprocal_root"},
                                           NamePair{"Exp", "exponential"},   NamePair{"Log", "logarithm"},
                                           NamePair{"Relu", "relu"},         NamePair{"Sigmoid", "sigmoid"},
                                           NamePair{"Tanh", "tanh"},         NamePair{"Silu", "silu"},
                                           NamePair{"Softplus", "softplus"}, NamePair{"Sign", "sign"}};
constexpr std::array kReductions = {NamePair{"Sum", "sum"}, NamePair{"Mean", "mean"}, NamePair{"Max", "largest"},
                                    NamePair{"Amax", "largest"}};

template <std::size_t kCount>
std::optional<std::string> holdfast_name(const std::array<NamePair, kCount>& names, std::string_view keras) {
  for (const NamePair& pair : names) {
    if (pair.keras == keras) return std::string(pair.holdfast);
  }
  return std::nullopt;
}

bool is_missing(const Json& value) {
  return value.is_null() || (value.is_array() && value.empty());
}

// Reads the options of one call.
class CallReader {
 public:
  CallReader(const KerasCall& call, std::vector<std::string>& notes)
      : call_(call), config_(call.config), notes_(notes) {}

  Steps read() {
    // A function has neither weights nor a type of its own, so the checks of layers are not for it.
    if (call_.is_operation) return read_operation();
    check_dtype();
    note_training();
    const std::string& kind = call_.class_name;
    if (kind == "Dense") return with_activation("Dense", dense());
    if (kind == "Conv2D" || kind == "Convolution2D") return with_activation("Conv2D", convolution());
    if (kind == "Activation") return with_activation("", Json::object());
    if (kind == "ReLU") return rectified();
    if (kind == "Softmax") return softmax();
    if (kind == "Identity") return layer("Activation", {{"activation", "linear"}});
    if (kind == "Dropout") return dropout();
    if (kind == "BatchNormalization") return batch_normalization();
    if (kind == "LayerNormalization") return layer_normalization();
    if (kind == "RMSNormalization") return rms_normalization();
    if (kind == "MaxPooling2D" || kind == "AveragePooling2D") return pooling(kind);
    if (kind.starts_with("GlobalAveragePooling") || kind.starts_with("GlobalMaxPooling")) return global_pooling();
    return read_merging_or_shape(kind);
  }

 private:
  static Steps layer(const std::string& kind, Json config = Json::object()) {
    return {{.suffix = "", .kind = kind, .config = std::move(config)}};
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    refuse_keras_layer(call_.path, call_.class_name, problem);
  }

  [[noreturn]] void refuse_option(std::string_view key) const {
    refuse(
        fmt::format("has the option {} = {}, which Holdfast does not have; use its default, or build the model with "
                    "another layer",
                    key, shown(member(config_, key))));
  }

  [[noreturn]] void refuse_class() const { refuse(fmt::format("has no counterpart; Holdfast has {}", kKnownClasses)); }

  // A value of a stranger, short enough for a sentence.
  static std::string shown(const Json& value) {
    return quoted_text(value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60));
  }

  Steps read_merging_or_shape(const std::string& kind) {
    constexpr std::array<std::string_view, 6> kMergingKinds = {"Add",     "Subtract", "Multiply",
                                                               "Average", "Maximum",  "Minimum"};
    if (std::find(kMergingKinds.begin(), kMergingKinds.end(), kind) != kMergingKinds.end()) return layer(kind);
    if (kind == "Concatenate") return layer(kind, {{"axis", sample_axis("axis", -1)}});
    // With channels first the flattened elements would have another order, and so would the next weights.
    if (kind == "Flatten") return check_channels(), layer(kind);
    if (kind == "Reshape") return layer(kind, {{"target_shape", integer_list("target_shape", -1)}});
    if (kind == "Permute") return layer(kind, {{"dims", integer_list("dims", 1)}});
    if (kind == "RepeatVector") return layer(kind, {{"n", integer_option("n")}});
    if (kind == "ZeroPadding2D") return check_channels(), layer(kind, {{"padding", margins("padding")}});
    if (kind == "Cropping2D") return check_channels(), layer(kind, {{"cropping", margins("cropping")}});
    if (kind == "UpSampling2D") return upsampling();
    if (kind == "Rescaling") return layer(kind, {{"scale", number("scale", 1)}, {"offset", number("offset", 0)}});
    refuse_class();
  }

  // The type in which a layer computes is a name, or the object of a policy.
  void check_dtype() const {
    const Json& dtype = member(config_, "dtype");
    const std::string name =
        dtype.is_string() ? dtype.get<std::string>() : text_member(member(dtype, "config"), "name");
    // Files of Keras 2 may not say it, and mean float32.
    if (dtype.is_null() || name == "float32") return;
    refuse(fmt::format("computes in {}, and Holdfast in float32; build the model with the dtype float32",
                       shown(name.empty() ? dtype : Json(name))));
  }

  void note_training() {
    std::vector<std::string> ignored;
    for (const auto& [key, value] : config_.items()) {
      const bool is_of_training = key.ends_with("_regularizer") || key.ends_with("_constraint");
      if (is_of_training && !value.is_null()) ignored.push_back(key);
    }
    if (!ignored.empty()) note(fmt::format("has a {}, which Holdfast leaves out", fmt::join(ignored, " and a ")));
  }

  void note(const std::string& problem) {
    notes_.push_back(fmt::format("layer {} {}", quoted_text(call_.path), problem));
  }

  // Fails unless the option is missing or has the value.
  void require_option(std::string_view key, const Json& expected) const {
    const Json& value = member(config_, key);
    if (!is_missing(value) && value != expected) refuse_option(key);
  }

  void check_channels() const { require_option("data_format", "channels_last"); }

  void check_weights() const {
    // Weights of such layers are stored in parts, and the kernel alone would be another one.
    require_option("lora_rank", nullptr);
    require_option("quantization_config", nullptr);
  }

  std::size_t rank() const {
    if (call_.inputs.empty() || !call_.inputs.front()) {
      refuse("gets a value whose shape cannot be derived; its options, or those before it, do not fit their inputs");
    }
    return call_.inputs.front()->size();
  }

  std::optional<std::int64_t> integer(const Json& value) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto number = integer_value(value);
    // In 32 bits, so that later arithmetic on such numbers cannot overflow.
    return number && *number >= -kMost && *number <= kMost ? number : std::nullopt;
  }

  std::int64_t integer_option(const char* key) const {
    const auto value = integer(member(config_, key));
    if (!value || *value < 1) refuse_option(key);
    return *value;
  }

  Json integer_list(const char* key, std::int64_t least) const {
    const Json& list = member(config_, key);
    if (!list.is_array()) refuse_option(key);
    for (const Json& value : list) {
      const auto number = integer(value);
      // -1 stands for an extent that follows from the others. Zero is never meant.
      if (!number || *number < least || *number == 0) refuse_option(key);
    }
    return list;
  }

  double number(const char* key, double otherwise) const {
    const Json& value = member(config_, key);
    if (value.is_null()) return otherwise;
    if (!value.is_number()) refuse_option(key);
    return value.get<double>();
  }

  // A height and a width, or one number for both.
  Json extents(const char* key, const Json& otherwise) const {
    const Json& value = member(config_, key);
    if (value.is_null()) return otherwise;
    const Json pair = value.is_number() ? Json::array({value, value}) : value;
    const bool is_pair =
        pair.is_array() && pair.size() == 2 && integer(pair[0]).value_or(0) >= 1 && integer(pair[1]).value_or(0) >= 1;
    if (!is_pair) refuse_option(key);
    return pair;
  }

  // Keras's [[top, bottom], [left, right]], [height, width] or one number.
  Json margins(const char* key) const {
    const Json& value = member(config_, key);
    Json flat = Json::array();
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const Json& side = value.is_array() && value.size() == 2 ? value[axis] : value;
      // A single number is the margin of both ends.
      const bool is_pair = side.is_array() && side.size() == 2;
      flat.push_back(is_pair ? side[0] : side);
      flat.push_back(is_pair ? side[1] : side);
    }
    for (const Json& margin : flat) {
      if (integer(margin).value_or(-1) < 0) refuse_option(key);
    }
    return flat;
  }

  // Keras counts the axis of samples, Holdfast does not.
  std::int64_t sample_axis(const char* key, std::int64_t otherwise) const {
    const Json& value = member(config_, key);
    const auto axis = value.is_null() ? std::optional(otherwise) : integer(value);
    // Axis 0 counts the samples in Keras, and no layer of Holdfast may mix them.
    if (!axis || *axis == 0 || *axis < -static_cast<std::int64_t>(rank())) refuse_option(key);
    return *axis < 0 ? *axis : *axis - 1;
  }

  // Holdfast normalizes along the last axis alone.
  void check_last_axis() const {
    const Json& value = member(config_, "axis");
    const Json& axis = value.is_array() && value.size() == 1 ? value[0] : value;
    // Keras counts the axis of samples, so the last axis has the number of axes of a sample.
    const bool is_last = axis.is_null() || axis == -1 || axis == rank();
    if (!is_last) refuse_option("axis");
  }

  std::string activation_name() const {
    const Json& value = member(config_, "activation");
    if (value.is_null()) return "linear";
    // Keras 3 may write a function as an object with its name.
    const std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "config");
    // A function of an application has no name that Holdfast could know.
    if (name.empty()) refuse_option("activation");
    return name;
  }

  // An activation that is not one of Holdfast's may be a function, as a layer of its own. `kind` is empty for a layer
  // that is an activation alone.
  Steps with_activation(const std::string& kind, Json config) const {
    const std::string keras = activation_name();
    const auto function = holdfast_name(kFunctions, keras);
    const auto activation = function ? std::optional<std::string>("linear") : holdfast_name(kActivations, keras);
    if (!activation) refuse_option("activation");
    Steps steps;
    config["activation"] = *activation;
    if (!kind.empty()) steps.push_back({.suffix = "", .kind = kind, .config = std::move(config)});
    if (kind.empty() && !function) return layer("Activation", std::move(config));
    // The function is a layer of its own after this one, which keeps its name and its weights.
    if (function) steps.push_back(element_step(kind.empty() ? "" : ".activation", *function, Json::array({nullptr})));
    return steps;
  }

  static HoldfastStep element_step(const std::string& suffix, const std::string& operation, const Json& constants) {
    return {.suffix = suffix, .kind = "Operation", .config = {{"operation", operation}, {"constants", constants}}};
  }

  std::string initializer(const char* key, const char* otherwise) {
    const Json& value = member(config_, key);
    if (value.is_null()) return otherwise;
    const std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "class_name");
    const Json& options = member(value, "config");
    // Its other options are a seed, which means nothing here: Holdfast draws from the seed of the run.
    if (auto found = holdfast_name(kInitializers, name)) return *found;
    const Json& deviation = member(options, "stddev");
    if (name == "RandomNormal" && number_member(options, "mean") == 0 && deviation.is_number() && deviation >= 0) {
      return fmt::format("normal({})", deviation.get<float>());
    }
    if (const std::string scaled = variance_scaling(name, options); !scaled.empty()) return scaled;
    // Not an error: the weights of the file replace what an initializer drew.
    note(fmt::format("has the {} {}, which Holdfast does not have: if it draws new weights, it takes {}", key,
                     quoted_text(name), otherwise));
    return otherwise;
  }

  // What Keras 2 wrote for the four that have names of their own.
  static std::string variance_scaling(const std::string& name, const Json& options) {
    if (name != "VarianceScaling") return "";
    const std::string distribution = text_member(options, "distribution");
    const bool is_uniform = distribution == "uniform";
    if (!is_uniform && distribution != "normal" && distribution != "truncated_normal") return "";
    // Glorot: variance 1 / mean of both fans. He: variance 2 / fan of the inputs.
    const double scale = number_member(options, "scale");
    if (text_member(options, "mode") == "fan_avg" && scale == 1) return is_uniform ? "glorot_uniform" : "glorot_normal";
    if (text_member(options, "mode") == "fan_in" && scale == 2) return is_uniform ? "he_uniform" : "he_normal";
    return "";
  }

  Json kernel_and_bias() {
    check_weights();
    return {{"use_bias", flag_member(config_, "use_bias", true)},
            {"kernel_initializer", initializer("kernel_initializer", "glorot_uniform")},
            {"bias_initializer", initializer("bias_initializer", "zeros")}};
  }

  Json dense() {
    Json config = kernel_and_bias();
    config["units"] = integer_option("units");
    return config;
  }

  std::string padding() const {
    const std::string padding = text_member(config_, "padding");
    if (padding == "same" || padding == "valid") return padding;
    if (!member(config_, "padding").is_null()) refuse_option("padding");
    return "valid";
  }

  Json convolution() {
    check_channels();
    Json config = kernel_and_bias();
    // A file of Holdfast has these two only where they are not 1.
    const Json dilation = extents("dilation_rate", {1, 1});
    if (dilation != Json({1, 1})) config["dilation_rate"] = dilation;
    if (!member(config_, "groups").is_null() && integer_option("groups") != 1) {
      config["groups"] = integer_option("groups");
    }
    config["filters"] = integer_option("filters");
    config["kernel_size"] = extents("kernel_size", nullptr);
    if (config["kernel_size"].is_null()) refuse_option("kernel_size");
    config["strides"] = extents("strides", {1, 1});
    config["padding"] = padding();
    return config;
  }

  Steps pooling(const std::string& kind) const {
    check_channels();
    const Json size = extents("pool_size", {2, 2});
    // Missing strides are the size of the window, as in Keras.
    return layer(kind, {{"pool_size", size}, {"strides", extents("strides", size)}, {"padding", padding()}});
  }

  Steps global_pooling() const {
    check_channels();
    const std::string& name = call_.class_name;
    const bool is_average = name.starts_with("GlobalAverage");
    // "GlobalAveragePooling" is 4 characters longer than "GlobalMaxPooling".
    const std::string dimensions = name.substr(std::string_view("GlobalMaxPooling").size() + (is_average ? 4 : 0));
    for (const auto& [text, axes] : {std::pair{"1D", 2U}, {"2D", 3U}, {"3D", 4U}}) {
      if (dimensions != text) continue;
      if (rank() != axes)
        refuse(fmt::format("gets a value with {} axes instead of {}; use another layer", rank(), axes));
      return layer(is_average ? "GlobalAveragePooling" : "GlobalMaxPooling",
                   {{"keepdims", flag_member(config_, "keepdims", false)}});
    }
    refuse_class();
  }

  Steps rectified() const {
    // Keras's ReLU is a family of functions, of which Holdfast has the plain one.
    require_option("max_value", nullptr);
    if (number("negative_slope", 0) != 0) refuse_option("negative_slope");
    if (number("threshold", 0) != 0) refuse_option("threshold");
    return layer("Activation", {{"activation", "relu"}});
  }

  Steps softmax() const {
    check_last_axis();
    return layer("Activation", {{"activation", "softmax"}});
  }

  Steps dropout() const {
    require_option("noise_shape", nullptr);
    const double rate = number("rate", 0.5);
    // Written so that a NaN is refused too.
    if (!(rate >= 0 && rate < 1)) refuse_option("rate");
    return layer("Dropout", {{"rate", rate}});
  }

  double epsilon(double otherwise) const {
    const double epsilon = number("epsilon", otherwise);
    // As a float, which is what Holdfast computes with.
    if (!(static_cast<float>(epsilon) > 0)) refuse_option("epsilon");
    return epsilon;
  }

  Steps batch_normalization() const {
    check_last_axis();
    for (const char* key : {"center", "scale"}) {
      // Without one of them the file has no array for it, which this layer always has.
      if (!flag_member(config_, key, true)) refuse_option(key);
    }
    require_option("renorm", false);
    const double momentum = number("momentum", 0.99);
    if (!(momentum >= 0 && momentum <= 1)) refuse_option("momentum");
    return layer("BatchNormalization", {{"momentum", momentum}, {"epsilon", epsilon(0.001)}});
  }

  Steps layer_normalization() const {
    check_last_axis();
    require_option("rms_scaling", false);
    return layer("LayerNormalization", {{"epsilon", epsilon(0.001)},
                                        {"scale", flag_member(config_, "scale", true)},
                                        {"center", flag_member(config_, "center", true)}});
  }

  Steps rms_normalization() const {
    check_last_axis();
    return layer("RMSNormalization", {{"epsilon", epsilon(1e-6)}});
  }

  Steps upsampling() const {
    check_channels();
    require_option("interpolation", "nearest");
    return layer("UpSampling2D", {{"size", extents("size", {2, 2})}});
  }

  Steps read_operation() const {
    const std::string& name = call_.class_name;
    if (const auto function = holdfast_name(kElementOperations, name)) return element_operation(*function);
    if (const auto kind = holdfast_name(kReductions, name)) return reduction(*kind);
    if (name == "Gelu") {
      // The exact form is an activation with a kernel of its own. The approximation uses tanh.
      if (!flag_member(config_, "approximate", true)) return layer("Activation", {{"activation", "gelu"}});
      return {element_step("", "gelu_tanh", Json::array({nullptr}))};
    }
    if (name == "Softmax") return softmax();
    if (name == "Identity") return layer("Activation", {{"activation", "linear"}});
    if (name == "StopGradient") return layer("Operation", {{"operation", "stop_gradient"}});
    if (name == "Concatenate") return layer("Concatenate", {{"axis", sample_axis("axis", -1)}});
    refuse(
        fmt::format("is a function that has no counterpart; Holdfast has functions of elements, sums, means, "
                    "maxima and concatenations, and the layers {}",
                    kKnownClasses));
  }

  Steps element_operation(const std::string& function) const {
    Json constants = Json::array();
    for (const std::optional<double>& argument : call_.arguments) {
      constants.push_back(argument ? Json(*argument) : Json());
    }
    // The axis of samples would meet another axis, where Holdfast aligns the last ones.
    for (const MaybeShape& shape : call_.inputs) {
      if (shape && shape->size() == rank()) continue;
      refuse("takes values with different numbers of axes; give them the same number with Reshape");
    }
    constexpr std::array<std::string_view, 3> kActivationOperations = {"relu", "sigmoid", "tanh"};
    const bool is_activation =
        std::find(kActivationOperations.begin(), kActivationOperations.end(), function) != kActivationOperations.end();
    if (is_activation) return layer("Activation", {{"activation", function}});
    constexpr std::array<std::string_view, 7> kTwo = {"add",   "subtract", "multiply", "divide",
                                                      "power", "maximum",  "minimum"};
    const std::size_t wanted = std::find(kTwo.begin(), kTwo.end(), function) == kTwo.end() ? 1 : 2;
    if (constants.size() != wanted) refuse(fmt::format("has {} arguments instead of {}", constants.size(), wanted));
    return {element_step("", function, constants)};
  }

  // Holdfast reduces neighbouring axes, which stay with extent 1, and so in several steps.
  Steps reduction(const std::string& kind) const {
    require_option("initial", nullptr);
    const auto axes = static_cast<std::int64_t>(rank());
    std::vector<bool> is_reduced(rank());
    const Json& value = member(config_, "axis");
    for (const Json& entry : value.is_array() ? value : Json::array({value})) {
      // Null means all axes, with that of the samples, and is refused as axis 0 is.
      const std::int64_t axis = integer(entry).value_or(0);
      const std::int64_t place = axis < 0 ? axis + axes : axis - 1;
      if (axis == 0 || place < 0 || place >= axes) {
        refuse("goes over the samples, or over an axis that does not exist; no value of Holdfast mixes samples");
      }
      is_reduced[static_cast<std::size_t>(place)] = true;
    }
    Steps steps;
    SampleShape kept;
    for (std::size_t begin = 0; begin < is_reduced.size(); ++begin) {
      if (!is_reduced[begin]) {
        kept.push_back((*call_.inputs.front())[begin]);
        continue;
      }
      std::size_t end = begin;
      while (end < is_reduced.size() && is_reduced[end]) ++end;
      steps.push_back({.suffix = fmt::format(".{}", steps.size()),
                       .kind = "Operation",
                       .config = {{"operation", kind}, {"axes", {begin, end}}}});
      // The loop steps over the axes that this step has reduced.
      begin = end - 1;
    }
    if (!flag_member(config_, "keepdims", false)) {
      steps.push_back({.suffix = "", .kind = "Operation", .config = {{"operation", "reshape"}, {"shape", Json(kept)}}});
    }
    // The last step has the name of the Keras layer, so that its output is found under that name.
    steps.back().suffix = "";
    return steps;
  }

  const KerasCall& call_;
  const Json& config_;
  std::vector<std::string>& notes_;
};

}  // namespace

void refuse_keras_layer(const std::string& path, const std::string& class_name, const std::string& problem) {
  throw Error(ErrorCode::unsupported,
              fmt::format("the Keras model cannot become a model of Holdfast: its layer {} ({}) {}", quoted_text(path),
                          quoted_text(class_name), problem));
}

std::vector<HoldfastStep> steps_of_keras_call(const KerasCall& call, std::vector<std::string>& notes) {
  return CallReader(call, notes).read();
}

}  // namespace holdfast::format
