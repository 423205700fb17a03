// A layer's two forms differ in little: a name, a default, or whether samples count as an axis. A table of these
// differences serves the reader and the writer, so the two cannot disagree, and a test can walk through it. Formulas of
// the layers are compared with Keras's in tests/interop/keras_kinds_test.py. docs/decisions/exchange.md

#include "keras_layers/keras_layer_table.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast::format {
namespace {

using enum OptionForm;
using Options = std::vector<LayerOption>;

constexpr const char* kGlorot = R"("glorot_uniform")";
constexpr const char* kZeros = R"("zeros")";
constexpr const char* kOnes = R"("ones")";
constexpr const char* kValid = R"("valid")";

Options joined(std::initializer_list<Options> parts) {
  Options result;
  for (const Options& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

Options bias_and_activation() {
  return {{"use_bias", flag, "true"}, {"bias_initializer", initializer, kZeros}, {"activation", activation, "null"}};
}

Options kernel() {
  return joined({bias_and_activation(), {{"kernel_initializer", initializer, kGlorot}}});
}

// Options that files of Holdfast lack where they have their default.
// So a model that does not use such an option has the same text whether its writer knew the option or not.
Options left_out(Options options) {
  for (LayerOption& option : options) option.is_left_out = true;
  return options;
}

// The same for files of Keras.
Options silent(Options options) {
  for (LayerOption& option : options) option.is_silent = true;
  return left_out(std::move(options));
}

// Options with a regularizer and a constraint of an array. Files leave both out where there are none.
// Both are texts in Holdfast, see keras_regularizer.h and keras_constraint.h.
Options limits(std::string_view regularizer_name, std::string_view constraint_name) {
  return left_out({{regularizer_name, regularizer, "null"}, {constraint_name, constraint, "null"}});
}

Options limits_of_bias() {
  return limits("bias_regularizer", "bias_constraint");
}

Options gamma_and_beta() {
  return joined({left_out({{"gamma_initializer", initializer, kOnes}, {"beta_initializer", initializer, kZeros}}),
                 limits("gamma_regularizer", "gamma_constraint"), limits("beta_regularizer", "beta_constraint")});
}

// With the limits of the layers that have a kernel and a bias.
Options limited_kernel() {
  return joined({kernel(), limits("kernel_regularizer", "kernel_constraint"), limits_of_bias()});
}

Options windows(OptionForm padding_form, bool leaves_out_dilation) {
  // Whether files have a dilation of 1 differs from kind to kind, and stays as it is: a model keeps its text.
  LayerOption dilation = {"dilation_rate", counts, "1"};
  dilation.is_left_out = leaves_out_dilation;
  return {{"kernel_size", counts}, {"strides", counts, "1"}, {"padding", padding_form, kValid}, dilation};
}

// Names of these layers differ in their last part alone: "1D" to "3D".
struct KindName {
  std::string_view kind;
  std::size_t positions;
};

LayerRow convolution(const KindName& name) {
  // Left out where it is 1, for the reason of left_out().
  LayerOption groups = {"groups", count, "1"};
  groups.is_left_out = true;
  // Keras pads causally along one axis only.
  const OptionForm form = name.positions == 1 ? causal_padding : padding;
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = joined({{{"filters", count}}, windows(form, true), {groups}, limited_kernel()}),
          .has_data_format = true};
}

// Keras 2 wrote the options of a convolution for the kinds that are made of one.
std::vector<LayerRequirement> without_groups() {
  return {{"groups", "1"}};
}

LayerRow transposed_convolution(const KindName& name) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = joined({{{"filters", count}},
                             windows(padding, true),
                             {{"output_padding", optional_counts, "null"}},
                             limited_kernel()}),
          .requirements = without_groups(),
          .has_data_format = true};
}

// These kinds always write dilation_rate, which convolutions leave out where it is 1.
Options depthwise() {
  return joined({windows(padding, false),
                 {{"depth_multiplier", count, "1"}, {"depthwise_initializer", initializer, kGlorot}},
                 bias_and_activation(),
                 limits("depthwise_regularizer", "depthwise_constraint"),
                 limits_of_bias()});
}

LayerRow depthwise_convolution(const KindName& name) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = depthwise(),
          .requirements = without_groups(),
          .has_data_format = true};
}

LayerRow separable_convolution(const KindName& name) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = joined({{{"filters", count}, {"pointwise_initializer", initializer, kGlorot}},
                             depthwise(),
                             limits("pointwise_regularizer", "pointwise_constraint")}),
          .requirements = without_groups(),
          .has_data_format = true};
}

// Without strides, Keras moves the window by its own size. Its files have null then.
LayerRow pooling(const KindName& name) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = {{"pool_size", counts, "2"}, {"strides", pool_strides, "null"}, {"padding", padding, kValid}},
          .has_data_format = true};
}

// One kind of Holdfast serves all ranks, and Keras has a class for each.
LayerRow global_pooling(std::string_view kind, const KindName& keras) {
  return {.kind = kind,
          .keras = keras.kind,
          .positions = keras.positions,
          .options = {{"keepdims", flag, "false"}},
          .has_data_format = true};
}

// Layers that move, repeat or cut elements along axes of positions.
LayerRow positional(const KindName& name, const LayerOption& option, std::vector<LayerRequirement> requirements = {}) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = {option},
          .requirements = std::move(requirements),
          // These classes alone have no such option.
          .has_data_format = name.kind != "Cropping1D" && name.kind != "UpSampling1D"};
}

// Options have one name on both sides here, and inputs may have any number of axes.
LayerRow plain(std::string_view kind, Options options = {}, std::vector<LayerRequirement> requirements = {}) {
  return {.kind = kind, .keras = kind, .options = std::move(options), .requirements = std::move(requirements)};
}

// Keras calls these with one argument, a list of values.
LayerRow merging(std::string_view kind, Options options = {}) {
  return {.kind = kind, .keras = kind, .options = std::move(options), .takes_list = true};
}

LayerRow spatial_dropout(const KindName& name) {
  return {.kind = name.kind,
          .keras = name.kind,
          .positions = name.positions,
          .options = {{"rate", rate}},
          // SpatialDropout1D has no such option in Keras, and none of the three takes `trainable`.
          .has_data_format = name.positions > 1,
          .takes_trainable = false};
}

void append_convolutions(std::vector<LayerRow>& rows) {
  for (const KindName& name : {KindName{"Conv1D", 1}, {"Conv2D", 2}, {"Conv3D", 3}}) rows.push_back(convolution(name));
  for (const KindName& name : {KindName{"Conv1DTranspose", 1}, {"Conv2DTranspose", 2}, {"Conv3DTranspose", 3}}) {
    rows.push_back(transposed_convolution(name));
  }
  for (const KindName& name : {KindName{"DepthwiseConv1D", 1}, {"DepthwiseConv2D", 2}}) {
    rows.push_back(depthwise_convolution(name));
  }
  for (const KindName& name : {KindName{"SeparableConv1D", 1}, {"SeparableConv2D", 2}}) {
    rows.push_back(separable_convolution(name));
  }
}

void append_pooling(std::vector<LayerRow>& rows) {
  for (const KindName& name : {KindName{"AveragePooling1D", 1},
                               {"AveragePooling2D", 2},
                               {"AveragePooling3D", 3},
                               {"MaxPooling1D", 1},
                               {"MaxPooling2D", 2},
                               {"MaxPooling3D", 3}}) {
    rows.push_back(pooling(name));
  }
  for (const KindName& name :
       {KindName{"GlobalAveragePooling1D", 1}, {"GlobalAveragePooling2D", 2}, {"GlobalAveragePooling3D", 3}}) {
    rows.push_back(global_pooling("GlobalAveragePooling", name));
  }
  for (const KindName& name :
       {KindName{"GlobalMaxPooling1D", 1}, {"GlobalMaxPooling2D", 2}, {"GlobalMaxPooling3D", 3}}) {
    rows.push_back(global_pooling("GlobalMaxPooling", name));
  }
}

// One kind of Holdfast serves all ranks.
LayerRow adaptive_pooling(std::string_view kind, const KindName& keras) {
  return {.kind = kind,
          .keras = keras.kind,
          .positions = keras.positions,
          .options = {{"output_size", counts}},
          .has_data_format = true};
}

void append_adaptive_pooling(std::vector<LayerRow>& rows) {
  for (const KindName& name :
       {KindName{"AdaptiveAveragePooling1D", 1}, {"AdaptiveAveragePooling2D", 2}, {"AdaptiveAveragePooling3D", 3}}) {
    rows.push_back(adaptive_pooling("AdaptiveAveragePooling", name));
  }
  for (const KindName& name :
       {KindName{"AdaptiveMaxPooling1D", 1}, {"AdaptiveMaxPooling2D", 2}, {"AdaptiveMaxPooling3D", 3}}) {
    rows.push_back(adaptive_pooling("AdaptiveMaxPooling", name));
  }
}

void append_shapes(std::vector<LayerRow>& rows) {
  // With channels first the flattened elements would have another order, and so would the next weights.
  rows.push_back({.kind = "Flatten", .keras = "Flatten", .has_data_format = true});
  rows.push_back(plain("Reshape", {{"target_shape", target_shape}}));
  rows.push_back(plain("Permute", {{"dims", order}}));
  rows.push_back(plain("RepeatVector", {{"n", count}}));
  for (const KindName& name : {KindName{"ZeroPadding1D", 1}, {"ZeroPadding2D", 2}, {"ZeroPadding3D", 3}}) {
    rows.push_back(positional(name, {"padding", margins, "1"}));
  }
  for (const KindName& name : {KindName{"Cropping1D", 1}, {"Cropping2D", 2}, {"Cropping3D", 3}}) {
    rows.push_back(positional(name, {"cropping", margins}));
  }
  rows.push_back(positional({"UpSampling1D", 1}, {"size", count, "2"}));
  // Keras lets images alone choose how they are interpolated, so one of the three rows has one option more.
  rows.push_back(positional({"UpSampling2D", 2}, {"size", counts, "2"}));
  rows.back().options.push_back(left_out({{"interpolation", interpolation, R"("nearest")"}}).front());
  rows.push_back(positional({"UpSampling3D", 3}, {"size", counts, "2"}));
  rows.push_back(plain("Rescaling", {{"scale", number, "1"}, {"offset", number, "0"}}));
  rows.push_back(merging("Concatenate", {{"axis", axis, "-1"}}));
  rows.push_back(merging("Dot", {{"axes", two_axes}, {"normalize", flag, "false"}}));
  for (const std::string_view kind : {"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"}) {
    rows.push_back(merging(kind));
  }
}

void append_activations(std::vector<LayerRow>& rows) {
  rows.push_back(plain("Activation", {{"activation", activation}}));
  rows.push_back(plain(
      "ReLU", {{"max_value", limit, "null"}, {"negative_slope", at_least_0, "0"}, {"threshold", at_least_0, "0"}}));
  // Keras 3 renamed this option. Files of both are read, and the new name is written.
  LayerOption slope = {"negative_slope", at_least_0, "0.3"};
  slope.old_keras = "alpha";
  rows.push_back(plain("LeakyReLU", {slope}));
  rows.push_back(plain("ELU", {{"alpha", number, "1"}}));
  rows.push_back(plain("PReLU", joined({{{"alpha_initializer", initializer, kZeros}, {"shared_axes", axes, "null"}},
                                        limits("alpha_regularizer", "alpha_constraint")})));
  rows.push_back(plain("Softmax", {{"axis", axis, "-1"}}));
}

void append_normalizations(std::vector<LayerRow>& rows) {
  // A BatchNormalization leaves these two out where they are true, and the others always write them.
  const Options scale_and_center = {{"scale", flag, "true"}, {"center", flag, "true"}};
  const Options of_batch =
      joined({left_out(scale_and_center), left_out({{"moving_mean_initializer", initializer, kZeros},
                                                    {"moving_variance_initializer", initializer, kOnes}})});
  rows.push_back(plain(
      "BatchNormalization",
      joined({{{"axis", last_axis, "-1"}, {"momentum", fraction, "0.99"}, {"epsilon", epsilon, "0.001"}},
              of_batch,
              gamma_and_beta()}),
      // Batch renormalization, which Keras 2 had, computes something else in training, and so did modes of Keras 1.
      {{"renorm", "false"}, {"mode", "0"}}));
  rows.push_back(plain(
      "LayerNormalization",
      joined(
          {left_out({{"axis", last_axes, "-1"}}), {{"epsilon", epsilon, "0.001"}}, scale_and_center, gamma_and_beta()}),
      {{"rms_scaling", "false"}}));
  rows.push_back(plain("UnitNormalization", {{"axis", axes, "-1"}}));
  rows.push_back(plain("RMSNormalization", {{"axis", last_axis, "-1"}, {"epsilon", epsilon, "1e-6"}}));
  // Keras 3.15 assigns channels to groups otherwise where another axis than the last is named.
  rows.push_back(
      plain("GroupNormalization",
            joined({{{"groups", count_or_all, "32"}, {"axis", last_axis, "-1", "axis"}, {"epsilon", epsilon, "0.001"}},
                    scale_and_center,
                    gamma_and_beta()})));
  rows.push_back(plain("Normalization", {{"axis", axes, "-1"},
                                         {"mean", statistics, "null"},
                                         {"variance", statistics, "null"},
                                         {"invert", flag, "false"}}));
}

void append_noise(std::vector<LayerRow>& rows) {
  // With a noise shape several elements share a draw. Holdfast has that for whole channels alone, as SpatialDropout.
  rows.push_back(plain("Dropout", {{"rate", rate, "0.5"}}, {{"noise_shape", "null"}}));
  rows.push_back(plain("AlphaDropout", {{"rate", rate}}, {{"noise_shape", "null"}}));
  rows.push_back(plain("GaussianDropout", {{"rate", rate}}));
  rows.push_back(plain("GaussianNoise", {{"stddev", fraction}}));
  for (const KindName& name : {KindName{"SpatialDropout1D", 1}, {"SpatialDropout2D", 2}, {"SpatialDropout3D", 3}}) {
    rows.push_back(spatial_dropout(name));
  }
}

// Attentions with projections have causality and masks as arguments of a call in Keras.
LayerRow attention_of_heads(std::string_view kind, Options options, std::vector<LayerRequirement> requirements) {
  return {.kind = kind,
          .keras = kind,
          .options = joined({std::move(options),
                             {{"dropout", rate, "0"},
                              {"use_bias", flag, "true"},
                              {"sliding_window", count_or_none, "null"},
                              {"kernel_initializer", initializer, kGlorot},
                              {"bias_initializer", initializer, kZeros}},
                             limits("kernel_regularizer", "kernel_constraint"),
                             limits_of_bias()}),
          .requirements = std::move(requirements),
          .call_flags = {"use_causal_mask", "return_attention_scores"},
          .call_values = {{"attention_mask", "attention_mask"}, {"value_mask", "padding_mask"}},
          .argument_names = {"query", "value", "key"}};
}

// These two take query, value and key as one list, and their masks as another one.
LayerRow plain_attention(std::string_view kind, Options options) {
  return {.kind = kind,
          .keras = kind,
          .options = joined({std::move(options), {{"dropout", rate, "0"}}}),
          .takes_list = true,
          .call_flags = {"use_causal_mask", "return_attention_scores"},
          .call_values = {{"mask", "padding_mask", true}}};
}

void append_attention(std::vector<LayerRow>& rows) {
  rows.push_back(attention_of_heads("MultiHeadAttention",
                                    {{"num_heads", count}, {"key_dim", count}, {"value_dim", count}},
                                    // Keras counts the axis of samples.
                                    {{"use_gate", "false"}, {"output_shape", "null"}, {"attention_axes", "[1]"}}));
  rows.push_back(attention_of_heads("GroupQueryAttention",
                                    {{"head_dim", count}, {"num_query_heads", count}, {"num_key_value_heads", count}},
                                    {{"use_gate", "false"}}));
  rows.push_back(plain_attention("Attention", {{"use_scale", flag, "false"}, {"score_mode", score_mode, R"("dot")"}}));
  rows.push_back(plain_attention("AdditiveAttention", {{"use_scale", flag, "true"}}));
}

LayerRow recurrent(std::string_view kind, Options options) {
  return {.kind = kind,
          .keras = kind,
          .options = joined({{{"units", count},
                              {"activation", cell_activation, R"("tanh")"},
                              {"use_bias", flag, "true"},
                              {"return_sequences", flag, "false"},
                              {"return_state", flag, "false"},
                              {"go_backwards", flag, "false"},
                              {"dropout", rate, "0"},
                              {"kernel_initializer", initializer, kGlorot},
                              {"recurrent_initializer", initializer, R"("orthogonal")"},
                              {"bias_initializer", initializer, kZeros}},
                             std::move(options),
                             silent({{"recurrent_dropout", rate, "0"}}),
                             limits("kernel_regularizer", "kernel_constraint"),
                             limits("recurrent_regularizer", "recurrent_constraint"),
                             limits_of_bias()}),
          // States that outlast a batch, zeros for masked steps, and steps as the first axis have no counterpart.
          .requirements = {{"stateful", "false"}, {"zero_output_for_mask", "false"}, {"time_major", "false"}},
          .call_values = {{"initial_state", {}, true}, {"mask", "mask"}},
          .argument_names = {"sequences"}};
}

void append_recurrent(std::vector<LayerRow>& rows) {
  const LayerOption gates = {"recurrent_activation", cell_activation, R"("sigmoid")"};
  rows.push_back(recurrent("SimpleRNN", {}));
  rows.push_back(recurrent("LSTM", {gates, {"unit_forget_bias", flag, "true"}}));
  rows.push_back(recurrent("GRU", joined({{gates}, silent({{"reset_after", flag, "true"}})})));
  // Its layer is an object of its own in Keras: keras_layer_reader.cpp.
  rows.push_back({.kind = "Bidirectional",
                  .keras = "Bidirectional",
                  .call_values = {{"initial_state", {}, true}, {"mask", "mask"}},
                  .read_by_name = {"layer", "backward_layer", "merge_mode"},
                  .argument_names = {"sequences"}});
}

std::vector<LayerRow> make_rows() {
  std::vector<LayerRow> rows;
  rows.push_back(plain("Dense", joined({{{"units", count}}, limited_kernel()})));
  rows.push_back(plain("Embedding",
                       joined({{{"input_dim", count, nullptr, "vocabulary"},
                                {"output_dim", count, nullptr, "width"},
                                {"embeddings_initializer", initializer, R"("uniform")", "initializer"}},
                               limits("embeddings_regularizer", "embeddings_constraint")}),
                       // Later layers of Keras would skip ids of 0.
                       {{"mask_zero", "false"}}));
  rows.push_back(plain("ReversibleEmbedding",
                       joined({{{"input_dim", count, nullptr, "vocabulary"},
                                {"output_dim", count, nullptr, "width"},
                                {"tie_weights", flag, "true"},
                                {"logit_soft_cap", limit, "null"},
                                {"embeddings_initializer", initializer, R"("uniform")", "initializer"}},
                               limits("embeddings_regularizer", "embeddings_constraint")}),
                       {{"mask_zero", "false"}, {"reverse_dtype", "null"}}));
  rows.push_back(plain("EinsumDense",
                       joined({{{"equation", equation},
                                {"output_shape", partial_shape},
                                {"bias_axes", letters, "null"},
                                {"activation", activation, "null"},
                                {"kernel_initializer", initializer, kGlorot},
                                {"bias_initializer", initializer, kZeros}},
                               limits("kernel_regularizer", "kernel_constraint"),
                               limits_of_bias()}),
                       {{"lora_rank", "null"}}));
  append_convolutions(rows);
  append_pooling(rows);
  append_adaptive_pooling(rows);
  append_shapes(rows);
  append_activations(rows);
  append_normalizations(rows);
  append_noise(rows);
  append_attention(rows);
  append_recurrent(rows);
  return rows;
}

// Names that Keras 1 and 2 wrote for the same classes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOldClasses = {
    {{"Convolution1D", "Conv1D"}, {"Convolution2D", "Conv2D"}, {"Convolution3D", "Conv3D"}}};

}  // namespace

bool is_cell_activation(const Json& value) {
  return value == "linear" || value == "relu" || value == "tanh" || value == "sigmoid";
}

// finite_f32() has a default for null, and null is not a number of any form.
bool fits_form(OptionForm form, const Json& value) {
  const auto found = value.is_null() ? std::nullopt : finite_f32(value, 0);
  if (!found) return false;
  switch (form) {
    case at_least_0:
    case limit:
      return *found >= 0;
    case rate:
      return *found >= 0 && *found < 1;
    case fraction:
      return *found >= 0 && *found <= 1;
    case epsilon:
      return *found > 0;
    default:
      return true;
  }
}

std::span<const LayerRow> layer_rows() {
  // Made once, at the first call, and never changed: pointers to rows stay valid, and any thread may read them.
  static const std::vector<LayerRow> rows = make_rows();
  return rows;
}

const LayerRow* row_of_keras_class(std::string_view class_name) {
  // Old names are replaced first, so that the table has each class once.
  for (const auto& [old_name, name] : kOldClasses) {
    if (class_name == old_name) class_name = name;
  }
  const std::span<const LayerRow> rows = layer_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const LayerRow& row) { return row.keras == class_name; });
  return found == rows.end() ? nullptr : &*found;
}

bool has_row_for_each_rank(std::string_view kind) {
  const std::span<const LayerRow> rows = layer_rows();
  return std::count_if(rows.begin(), rows.end(), [&](const LayerRow& row) { return row.kind == kind; }) > 1;
}

const LayerRow* row_of_kind(std::string_view kind, std::size_t positions) {
  // A kind with one row serves inputs of any rank, so `positions` says nothing then.
  const bool is_chosen = has_row_for_each_rank(kind);
  const std::span<const LayerRow> rows = layer_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const LayerRow& row) {
    return row.kind == kind && (!is_chosen || row.positions == positions);
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace holdfast::format
