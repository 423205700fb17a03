// The table of layers says which options a layer has. What only matters to training, such as a regularizer, becomes a
// note. Statistics that are options in Keras become weights, so that predictions are the same. See
// docs/decisions/exchange.md.

#include "keras_layers/keras_layer_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "keras_layers/keras_initializer.h"
#include "keras_layers/keras_layer_table.h"
#include "keras_layers/keras_operation_reader.h"
#include "keras_layers/keras_option_reader.h"

namespace holdfast::format {
namespace {

std::int64_t elements_of_sample(const SampleShape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  return elements;
}

// Reads one call of a layer.
class LayerReader {
 public:
  LayerReader(const KerasCall& call, std::vector<std::string>& notes)
      : call_(call), config_(call.config), options_(call, notes) {}

  std::vector<HoldfastStep> read() {
    // First, since a layer that computes in another type gives other numbers even if all options fit.
    check_dtype();
    // Weights of such layers are stored in parts, and the kernel alone would be another one.
    options_.require("lora_rank", nullptr);
    options_.require("quantization_config", nullptr);
    if (call_.class_name == "Identity") {
      return {{.suffix = "", .kind = "Activation", .config = {{"activation", "linear"}}}};
    }
    // Everything about an option stands in the table. What follows here are the layers that a row cannot describe.
    const LayerRow* row = row_of_keras_class(call_.class_name);
    if (row == nullptr) options_.refuse(fmt::format("has no counterpart; Holdfast has {}", known_keras_classes()));
    note_training(*row);
    check_axes(*row);
    // Channels first would need kernels and all later shapes in another order.
    if (row->has_data_format) options_.require("data_format", "channels_last");
    options_.refuse_unknown(*row);
    if (call_.class_name == "Dropout" && member(config_, "noise_shape").is_array()) return dropout_of_noise(*row);
    if (becomes_normalization(call_.class_name, config_)) return normalization_of_lists(*row);
    if (row->kind == "Bidirectional") return bidirectional(*row);
    for (const LayerRequirement& requirement : row->requirements) {
      options_.require(requirement.keras, Json::parse(requirement.value));
    }
    HoldfastStep step{.suffix = "", .kind = std::string(row->kind), .config = Json::object()};
    for (const LayerOption& option : row->options) read_option(*row, option, step);
    if (row->kind == "Normalization") add_statistics(step);
    add_arguments(*row, step);
    return {std::move(step)};
  }

 private:
  // What Keras gives to a call, and Holdfast to the layer.
  void add_arguments(const LayerRow& row, HoldfastStep& step) const {
    const auto has = [](const std::vector<std::string>& names, std::string_view name) {
      return std::ranges::find(names, name) != names.end();
    };
    for (const std::string_view name : row.call_flags) step.config[std::string(name)] = has(call_.flags, name);
    for (const CallValue& value : row.call_values) {
      if (!value.flag.empty()) step.config[std::string(value.flag)] = has(call_.named, value.keras);
    }
  }

  // The layer that goes backwards must be the other one in all but its direction.
  std::vector<HoldfastStep> bidirectional(const LayerRow& row) const {
    const auto step_of = [&](const char* key) {
      const Json& object = member(config_, key);
      const std::string class_name = text_member(object, "class_name");
      if (class_name != "LSTM" && class_name != "GRU" && class_name != "SimpleRNN") options_.refuse_option(key);
      Json config = member(object, "config");
      // Keras sets it where the layer returns sequences, and Holdfast's does the same.
      if (config.is_object()) config.erase("zero_output_for_mask");
      const KerasCall inner{
          .path = call_.path, .class_name = class_name, .config = config, .inputs = call_.inputs, .arguments = {}};
      std::vector<std::string> notes;
      HoldfastStep step = LayerReader(inner, notes).read().front();
      for (const std::string& note : notes) options_.note(fmt::format("has a part: {}", note));
      step.config["layer"] = step.kind;
      return step;
    };
    HoldfastStep step = step_of("layer");
    if (!member(config_, "backward_layer").is_null()) {
      HoldfastStep backward = step_of("backward_layer");
      if (backward.config["go_backwards"] != true) options_.refuse_option("backward_layer");
      backward.config["go_backwards"] = false;
      if (backward.config != step.config) options_.refuse_option("backward_layer");
    }
    const std::string mode = text_member(config_, "merge_mode");
    if (mode != "concat" && mode != "sum" && mode != "mul" && mode != "ave") options_.refuse_option("merge_mode");
    if (step.config["go_backwards"] == true) options_.refuse_option("layer");
    step.config["merge_mode"] = mode;
    step.kind = "Bidirectional";
    add_arguments(row, step);
    return {std::move(step)};
  }

  // Axes of extent 1 in the shape of the noise share one draw. Holdfast has that for all axes but the channels.
  std::vector<HoldfastStep> dropout_of_noise(const LayerRow& row) const {
    constexpr const char* kNoise = "noise_shape";
    const Json& noise = member(config_, kNoise);
    const std::size_t rank = options_.rank();
    const SampleShape& sample = *call_.inputs.front();
    if (rank == 0 || noise.size() != rank + 1 || !noise[0].is_null()) options_.refuse_option(kNoise);
    // Axes that share one draw, and axes with draws of their own. Axes of extent 1 are both, and do not count.
    std::size_t shared = 0;
    std::size_t own = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const Json& extent = noise[axis + 1];
      if (!extent.is_null() && extent != 1 && extent != sample[axis]) options_.refuse_option(kNoise);
      if (sample[axis] == 1) continue;
      ++(extent == 1 ? shared : own);
    }
    const bool has_own_channels = noise[rank] != 1 && sample.back() != 1;
    HoldfastStep step{.suffix = "", .kind = "Dropout", .config = Json::object()};
    for (const LayerOption& option : row.options) read_option(row, option, step);
    if (shared == 0) return {step};
    if (own == 0) return dropout_of_samples(std::move(step), sample);
    constexpr std::size_t kMostPositions = 3;
    // A spatial dropout draws once for each channel. Other mixtures of shared and own axes have no counterpart.
    if (own > 1 || !has_own_channels || rank > kMostPositions + 1) options_.refuse_option(kNoise);
    step.kind = fmt::format("SpatialDropout{}D", rank - 1);
    return {step};
  }

  // One draw for each sample (stochastic depth): the sample is a single channel then.
  static std::vector<HoldfastStep> dropout_of_samples(HoldfastStep dropout, const SampleShape& sample) {
    const auto reshape = [](const char* suffix, const SampleShape& shape) {
      return HoldfastStep{
          .suffix = suffix, .kind = "Operation", .config = {{"operation", "reshape"}, {"shape", Json(shape)}}};
    };
    // The last step keeps the name of the Keras layer, so that its output is found under that name.
    dropout.suffix = ".1";
    dropout.kind = "SpatialDropout1D";
    return {reshape(".0", {elements_of_sample(sample), 1}), std::move(dropout), reshape("", sample)};
  }

  // Holdfast's Rescaling has one factor for all. One for each channel is (x - mean) / sqrt(variance).
  std::vector<HoldfastStep> normalization_of_lists(const LayerRow& row) const {
    // Refuses an input of unknown shape. A sample without axes has no channels.
    if (options_.rank() == 0) options_.refuse_option("scale");
    const auto channels = static_cast<std::size_t>(call_.inputs.front()->back());
    const auto numbers_of = [&](const char* key, const char* otherwise) {
      // A list in a list would be along another axis.
      for (const Json& number : member(config_, key)) {
        if (number.is_array()) options_.refuse_option(key);
      }
      const auto list = options_.value(row, {.keras = key, .form = OptionForm::statistics, .otherwise = otherwise}, {})
                            .get<std::vector<double>>();
      if (list.size() != 1 && list.size() != channels) options_.refuse_option(key);
      return list.size() == 1 ? std::vector<double>(channels, list.front()) : list;
    };
    const std::vector<double> scale = numbers_of("scale", "1");
    const std::vector<double> offset = numbers_of("offset", "0");
    HoldfastStep step{
        .suffix = "", .kind = "Normalization", .config = {{"axis", Json::array({-1})}, {"invert", false}}};
    for (std::size_t channel = 0; channel < channels; ++channel) {
      // No square root is negative.
      if (scale[channel] <= 0) options_.refuse_option("scale");
      // scale * x + offset is (x - mean) / sqrt(variance) with these two numbers. In double, and rounded once.
      step.config["mean"].push_back(static_cast<float>(-offset[channel] / scale[channel]));
      step.config["variance"].push_back(static_cast<float>(1 / (scale[channel] * scale[channel])));
    }
    add_statistics(step);
    return {std::move(step)};
  }

  void read_option(const LayerRow& row, const LayerOption& option, HoldfastStep& step) const {
    Json value = options_.value(row, option, step.config);
    if (option.form == OptionForm::last_axis && option.holdfast.empty()) return;
    // An option that has no value is left out, too.
    if (option.form == OptionForm::optional_counts && value.is_null()) return;
    if (option.is_left_out && is_default(option, value)) return;
    step.config[std::string(option.holdfast_name())] = std::move(value);
  }

  // A list is the default if it repeats it.
  static bool is_default(const LayerOption& option, const Json& value) {
    const Json otherwise = Json::parse(option.otherwise);
    const auto is_equal = [&](const Json& element) { return element == otherwise; };
    return value.is_array() ? std::all_of(value.begin(), value.end(), is_equal) : is_equal(value);
  }

  // The type in which a layer computes is a name, or the object of a policy.
  void check_dtype() const {
    const Json& dtype = member(config_, "dtype");
    const std::string name =
        dtype.is_string() ? dtype.get<std::string>() : text_member(member(dtype, "config"), "name");
    // Files of Keras 2 may not say it, and mean float32.
    if (dtype.is_null() || name == "float32") return;
    // A policy of another form is shown as it is, cut to what fits a sentence.
    const std::string text = name.empty() ? dtype.dump(-1, ' ', false, Json::error_handler_t::replace) : name;
    options_.refuse(fmt::format("computes in {}, and Holdfast in float32; build the model with the dtype float32",
                                quoted_text(text.substr(0, 60))));
  }

  void note_training(const LayerRow& row) const {
    std::vector<std::string> ignored;
    for (const auto& item : config_.items()) {
      const std::string& key = item.key();
      const Json& value = item.value();
      // The reader of the option speaks for itself.
      if (std::ranges::any_of(row.options, [&](const LayerOption& option) { return option.keras == key; })) continue;
      // By the ends of names, so that options which the row of the layer lacks are noted too.
      const bool is_of_training = key.ends_with("_regularizer") || key.ends_with("_constraint");
      if (is_of_training && !value.is_null()) ignored.push_back(key);
      if (key.ends_with("_initializer") && !value.is_null()) note_initializer(key, value);
    }
    // Only training differs: predictions take the moving statistics.
    if (flag_member(config_, "synchronized", false)) {
      options_.note("has synchronized = True; Holdfast takes the statistics of each shard of a batch");
    }
    if (!ignored.empty()) {
      options_.note(fmt::format("has a {}, which Holdfast leaves out", fmt::join(ignored, " and a ")));
    }
  }

  // Normalizations have none here: what they multiply by begins with 1, and what they add with 0.
  void note_initializer(const std::string& key, const Json& value) const {
    const bool is_scale = key == "gamma_initializer" || key == "moving_variance_initializer";
    const char* otherwise = is_scale ? "ones" : "zeros";
    if (initializer_of_keras(value) == otherwise) return;
    options_.note(
        fmt::format("has a {} that Holdfast leaves out: if it draws new weights, it takes {}", key, otherwise));
  }

  void check_axes(const LayerRow& row) const {
    const bool is_known = !call_.inputs.empty() && call_.inputs.front();
    // A missing shape is not an error here: only layers that need it ask for it.
    if (row.positions == 0 || !is_known || options_.rank() == row.positions + 1) return;
    options_.refuse(
        fmt::format("gets a value with {} axes instead of {}; use another layer", options_.rank(), row.positions + 1));
  }

  // Numbers that were given in Keras are options there, and weights here. Without them Keras has the weights, too.
  void add_statistics(HoldfastStep& step) const {
    if (step.config["mean"].size() != step.config["variance"].size()) options_.refuse_option("variance");
    if (step.config["mean"].empty()) return;
    // Refuses an input of unknown shape.
    static_cast<void>(options_.rank());
    const SampleShape& sample = *call_.inputs.front();
    std::set<std::int64_t> axes;
    // As the set of places, since Keras keeps statistics in the order of the axes of the input, whatever order the
    // option has.
    for (const Json& axis : step.config["axis"]) {
      const auto place = axis.get<std::int64_t>();
      axes.insert(place < 0 ? place + static_cast<std::int64_t>(sample.size()) : place);
    }
    SampleShape kept;
    for (const std::int64_t axis : axes) kept.push_back(sample[static_cast<std::size_t>(axis)]);
    // Without axes there is one mean for everything, and Holdfast's weight has one element.
    if (kept.empty()) kept.push_back(1);
    for (const char* key : {"mean", "variance"}) {
      auto numbers = step.config[key].get<std::vector<float>>();
      const auto count = static_cast<std::int64_t>(numbers.size());
      // Keras also takes numbers for some of the axes, which it repeats along the others.
      if (count != 1 && count != elements_of_sample(kept)) options_.refuse_option(key);
      add_weight(key, kept, std::move(numbers), step);
    }
  }

  void add_weight(const std::string& name, SampleShape shape, std::vector<float> values, HoldfastStep& step) const {
    // The shape comes from options of a file, so a few bytes could ask for any amount of memory.
    if (elements_of_sample(shape) > ConstantWeight::kMaxElements) {
      options_.refuse(fmt::format("needs a {} of more than {} numbers that its file does not have; use a smaller layer",
                                  name, ConstantWeight::kMaxElements));
    }
    step.weights.push_back({.name = name, .shape = std::move(shape), .values = std::move(values)});
  }

  const KerasCall& call_;
  const Json& config_;
  const KerasOptionReader options_;
};

bool has_several_numbers(const Json& value) {
  return value.is_array() &&
         std::any_of(value.begin(), value.end(), [&](const Json& element) { return element != value.front(); });
}

}  // namespace

bool becomes_normalization(std::string_view class_name, const Json& config) {
  return class_name == "Rescaling" &&
         (has_several_numbers(member(config, "scale")) || has_several_numbers(member(config, "offset")));
}

// In a set, so the sentence is sorted and names a class with several rows once.
std::string known_keras_classes() {
  std::set<std::string> classes = {"Identity", "InputLayer", "TimeDistributed"};
  for (const LayerRow& row : layer_rows()) classes.emplace(row.keras);
  return fmt::format("{}, and nested models of these", fmt::join(classes, ", "));
}

void refuse_keras_layer(const std::string& path, const std::string& class_name, const std::string& problem) {
  throw Error(ErrorCode::unsupported,
              fmt::format("the Keras model cannot become a model of Holdfast: its layer {} ({}) {}", quoted_text(path),
                          quoted_text(class_name), problem));
}

std::vector<HoldfastStep> steps_of_keras_call(const KerasCall& call, std::vector<std::string>& notes) {
  // A function has neither weights nor a type of its own, so the checks of layers are not for it.
  return call.is_operation ? steps_of_keras_function(call, notes) : LayerReader(call, notes).read();
}

}  // namespace holdfast::format
