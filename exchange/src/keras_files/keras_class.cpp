// Keras's weights files number the variables of a layer instead of naming them. These tables hold the names in
// Keras's order, by class. A class or an option that the tables lack gives no names at all, never wrong ones.

#include "keras_files/keras_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace holdfast::format {
namespace {

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Like \w in Python's regular expressions, as far as names of classes need it.
bool is_word(char c) {
  return is_upper(c) || is_lower(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

struct Variable {
  std::string_view name;
  std::string_view flag = "";  // the option that removes the variable when it is not `flag_value`
  bool flag_default = true;
  bool is_trainable = true;
  bool flag_value = true;
};

// Keras's own names: legacy files hold them, and are compared with them.
constexpr Variable kKernel = {"kernel"};
constexpr Variable kBias = {"bias", "use_bias"};
constexpr Variable kGamma = {"gamma", "scale"};
constexpr Variable kBeta = {"beta", "center"};

using Variables = std::vector<Variable>;

const Variables kKernelBias = {kKernel, kBias};
const Variables kSeparable = {{"depthwise_kernel"}, {"pointwise_kernel"}, kBias};
const Variables kRecurrent = {kKernel, {"recurrent_kernel"}, kBias};
// Trainable variables come first, as Keras lists those of a layer.
const Variables kBatchNormalization = {
    kGamma, kBeta, {"moving_mean", "", true, false}, {"moving_variance", "", true, false}};
const Variables kScaleAndShift = {kGamma, kBeta};
const Variables kNormalization = {{"mean", "", true, false}, {"variance", "", true, false}, {"count", "", true, false}};
const Variables kEmbedding = {{"embeddings"}};
const Variables kNothing = {};

struct Class {
  std::string_view name;
  const Variables* variables;
};

const std::array kClasses = {
    Class{"Dense", &kKernelBias},
    Class{"EinsumDense", &kKernelBias},
    Class{"Conv1D", &kKernelBias},
    Class{"Conv2D", &kKernelBias},
    Class{"Conv3D", &kKernelBias},
    Class{"Conv1DTranspose", &kKernelBias},
    Class{"Conv2DTranspose", &kKernelBias},
    Class{"Conv3DTranspose", &kKernelBias},
    Class{"Convolution1D", &kKernelBias},
    Class{"Convolution2D", &kKernelBias},
    Class{"DepthwiseConv1D", &kKernelBias},
    Class{"DepthwiseConv2D", &kKernelBias},
    Class{"SeparableConv1D", &kSeparable},
    Class{"SeparableConv2D", &kSeparable},
    Class{"SimpleRNNCell", &kRecurrent},
    Class{"GRUCell", &kRecurrent},
    Class{"LSTMCell", &kRecurrent},
    Class{"ConvLSTMCell", &kRecurrent},
    Class{"BatchNormalization", &kBatchNormalization},
    Class{"LayerNormalization", &kScaleAndShift},
    Class{"GroupNormalization", &kScaleAndShift},
    Class{"Embedding", &kEmbedding},
    Class{"Normalization", &kNormalization},
    // Layers whose variables belong to their children.
    Class{"SimpleRNN", &kNothing},
    Class{"GRU", &kNothing},
    Class{"LSTM", &kNothing},
    Class{"RNN", &kNothing},
    Class{"ConvLSTM1D", &kNothing},
    Class{"ConvLSTM2D", &kNothing},
    Class{"ConvLSTM3D", &kNothing},
    Class{"Bidirectional", &kNothing},
    Class{"TimeDistributed", &kNothing},
    Class{"MultiHeadAttention", &kNothing},
    Class{"GroupQueryAttention", &kNothing},
};

// The reverse matrix is there only where the weights are not tied.
const Variables kReversible = {{"embeddings"}, {"reverse_embeddings", "tie_weights", true, true, false}};
const Variables kRms = {{"scale"}};
const Variables kAlpha = {{"alpha"}};
const Variables kAttention = {{"scale", "use_scale", false}};
const Variables kAdditiveAttention = {{"scale", "use_scale"}};
const std::array kSmallClasses = {Class{"RMSNormalization", &kRms}, Class{"PReLU", &kAlpha},
                                  Class{"AdditiveAttention", &kAdditiveAttention}, Class{"Attention", &kAttention},
                                  Class{"ReversibleEmbedding", &kReversible}};

// Layers without variables.
// Named, since an unknown class may have variables, and a known one without any has none.
constexpr std::array<std::string_view, 68> kBareClasses = {"Activation",
                                                           "ActivityRegularization",
                                                           "AdaptiveAveragePooling1D",
                                                           "AdaptiveAveragePooling2D",
                                                           "AdaptiveAveragePooling3D",
                                                           "AdaptiveMaxPooling1D",
                                                           "AdaptiveMaxPooling2D",
                                                           "AdaptiveMaxPooling3D",
                                                           "Add",
                                                           "AlphaDropout",
                                                           "Average",
                                                           "AveragePooling1D",
                                                           "AveragePooling2D",
                                                           "AveragePooling3D",
                                                           "CategoryEncoding",
                                                           "CenterCrop",
                                                           "Concatenate",
                                                           "Cropping1D",
                                                           "Cropping2D",
                                                           "Cropping3D",
                                                           "Dot",
                                                           "Dropout",
                                                           "ELU",
                                                           "Flatten",
                                                           "GaussianDropout",
                                                           "GaussianNoise",
                                                           "GlobalAveragePooling1D",
                                                           "GlobalAveragePooling2D",
                                                           "GlobalAveragePooling3D",
                                                           "GlobalMaxPooling1D",
                                                           "GlobalMaxPooling2D",
                                                           "GlobalMaxPooling3D",
                                                           "Identity",
                                                           "InputLayer",
                                                           "Lambda",
                                                           "LeakyReLU",
                                                           "Masking",
                                                           "MaxPooling1D",
                                                           "MaxPooling2D",
                                                           "MaxPooling3D",
                                                           "Maximum",
                                                           "Merge",
                                                           "Minimum",
                                                           "Multiply",
                                                           "Permute",
                                                           "RandomBrightness",
                                                           "RandomContrast",
                                                           "RandomCrop",
                                                           "RandomFlip",
                                                           "RandomRotation",
                                                           "RandomTranslation",
                                                           "RandomZoom",
                                                           "ReLU",
                                                           "RepeatVector",
                                                           "Rescaling",
                                                           "Reshape",
                                                           "Resizing",
                                                           "Softmax",
                                                           "SpatialDropout1D",
                                                           "SpatialDropout2D",
                                                           "SpatialDropout3D",
                                                           "Subtract",
                                                           "ThresholdedReLU",
                                                           "UnitNormalization",
                                                           "UpSampling1D",
                                                           "UpSampling2D",
                                                           "UpSampling3D",
                                                           "ZeroPadding2D"};

// Groups that are named after an attribute of their parent instead of a class.
struct Attribute {
  std::string_view name;
  std::string_view class_name;
};
constexpr std::array kLayerAttributes = {
    Attribute{"cell", "LSTMCell"},
    Attribute{"query_dense", "EinsumDense"},
    Attribute{"key_dense", "EinsumDense"},
    Attribute{"value_dense", "EinsumDense"},
    Attribute{"output_dense", "EinsumDense"},
    Attribute{"gate_dense", "EinsumDense"},
    Attribute{"_query_dense", "EinsumDense"},
    Attribute{"_key_dense", "EinsumDense"},
    Attribute{"_value_dense", "EinsumDense"},
    Attribute{"_output_dense", "EinsumDense"},
};

// Returns null for an unknown class.
const Variables* variables_of(std::string_view class_name) {
  for (const Class& known : kClasses) {
    if (known.name == class_name) return known.variables;
  }
  for (const Class& known : kSmallClasses) {
    if (known.name == class_name) return known.variables;
  }
  const bool is_bare = std::find(kBareClasses.begin(), kBareClasses.end(), class_name) != kBareClasses.end() ||
                       class_name == "ZeroPadding1D" || class_name == "ZeroPadding3D";
  return is_bare ? &kNothing : nullptr;
}

// True for options that add variables which the tables lack.
// Names for such a layer would be those of other variables, so it counts as one of an unknown class.
bool has_unusual_variables(const Json& config) {
  return flag_member(config, "renorm", false) || flag_member(config, "use_gate", false) ||
         !member(config, "lora_rank").is_null() || !member(config, "quantization_config").is_null() ||
         flag_member(config, "rms_scaling", false);
}

// "dense_12" becomes "dense"; "conv2d" stays.
std::string_view without_counter(std::string_view snake_name) {
  std::size_t end = snake_name.size();
  while (end > 0 && is_digit(snake_name[end - 1])) --end;
  if (end == 0 || end == snake_name.size() || snake_name[end - 1] != '_') return snake_name;
  return snake_name.substr(0, end - 1);
}

// Finds a group's class by its name: an attribute of a layer, or a class in snake case with a counter.
const Variables* variables_of_group(std::string_view snake_name) {
  // Attributes first: "cell" is not a class in snake case.
  for (const Attribute& attribute : kLayerAttributes) {
    if (attribute.name == snake_name) return variables_of(attribute.class_name);
  }
  const std::string_view base = without_counter(snake_name);
  // "dense_1" is the second Dense layer of a model: Keras names groups after classes and counts them.
  const auto fits = [base](const Class& known) { return keras_snake_case(known.name) == base; };
  const auto found = std::find_if(kClasses.begin(), kClasses.end(), fits);
  if (found != kClasses.end()) return found->variables;
  const auto small = std::find_if(kSmallClasses.begin(), kSmallClasses.end(), fits);
  return small != kSmallClasses.end() ? small->variables : nullptr;
}

}  // namespace

std::string keras_snake_case(std::string_view class_name) {
  // The two substitutions of Keras's to_snake_case(), without regular expressions.
  std::string word;
  for (const char c : class_name) {
    if (is_word(c)) word.push_back(c);
  }
  // First a break is added before each capital that small letters follow, unless the letter in front of it ended such
  // a word itself. Then one is added between each small letter and a capital.
  std::string parted;
  for (std::size_t i = 0; i < word.size();) {
    parted.push_back(word[i++]);
    if (i + 1 >= word.size() || !is_upper(word[i]) || !is_lower(word[i + 1])) continue;
    parted += {'_', word[i++]};
    while (i < word.size() && is_lower(word[i])) parted.push_back(word[i++]);
  }
  std::string result;
  for (std::size_t i = 0; i < parted.size(); ++i) {
    if (i > 0 && is_lower(parted[i - 1]) && is_upper(parted[i])) result.push_back('_');
    result.push_back(is_upper(parted[i]) ? static_cast<char>(parted[i] - 'A' + 'a') : parted[i]);
  }
  return result;
}

std::optional<std::vector<KerasVariable>> keras_variables(std::string_view class_name, const Json& config) {
  const Variables* variables = variables_of(class_name);
  if (variables == nullptr || has_unusual_variables(config)) return std::nullopt;
  std::vector<KerasVariable> result;
  // Given statistics are options and no variables.
  if (class_name == "Normalization" && !member(config, "mean").is_null()) return result;
  // Those inside of an attention have no equation in its configuration.
  // Whether it has a bias follows from `bias_axes` in the one case and from `use_bias` of the attention in the other.
  const bool is_layer = class_name == "EinsumDense" && !member(config, "equation").is_null();
  const bool lacks_bias = is_layer && member(config, "bias_axes").is_null();
  for (const Variable& variable : *variables) {
    if (lacks_bias && variable.name == "bias") continue;
    const bool is_there =
        variable.flag.empty() || flag_member(config, variable.flag, variable.flag_default) == variable.flag_value;
    if (is_there) result.push_back({std::string(variable.name), variable.is_trainable});
  }
  // The only variable that another option than a flag brings.
  if (class_name == "Attention" && text_member(config, "score_mode") == "concat") {
    result.push_back({"concat_score_weight", true});
  }
  return result;
}

std::vector<std::string> guess_keras_variables(std::string_view snake_name, std::size_t count) {
  const Variables* variables = variables_of_group(snake_name);
  if (variables == nullptr) return {};
  const auto is_optional = [](const Variable& variable) { return !variable.flag.empty(); };
  // A weights file has no configuration, so the number of variables is all that tells whether there is a bias.
  const auto optional = static_cast<std::size_t>(std::count_if(variables->begin(), variables->end(), is_optional));
  // Either all optional variables exist, or none: any other number leaves open which ones are missing.
  const bool has_all = count == variables->size();
  if (!has_all && count + optional != variables->size()) return {};
  std::vector<std::string> names;
  for (const Variable& variable : *variables) {
    if (has_all || !is_optional(variable)) names.emplace_back(variable.name);
  }
  return names;
}

}  // namespace holdfast::format
