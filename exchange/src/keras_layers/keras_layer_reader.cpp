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
    check_dtype();
    // Weights of such layers are stored in parts, and the kernel alone would be another one.
    options_.require("lora_rank", nullptr);
    options_.require("quantization_config", nullptr);
    if (call_.class_name == "Identity") {
      return {{.suffix = "", .kind = "Activation", .config = {{"activation", "linear"}}}};
    }
    const LayerRow* row = row_of_keras_class(call_.class_name);
    if (row == nullptr) options_.refuse(fmt::format("has no counterpart; Holdfast has {}", known_keras_classes()));
    note_training(*row);
    check_axes(*row);
    if (row->has_data_format) options_.require("data_format", "channels_last");
    for (const LayerRequirement& requirement : row->requirements) {
      options_.require(requirement.keras, Json::parse(requirement.value));
    }
    HoldfastStep step{.suffix = "", .kind = std::string(row->kind), .config = Json::object()};
    for (const LayerOption& option : row->options) read_option(*row, option, step);
    if (row->kind == "Normalization") add_statistics(step);
    return {std::move(step)};
  }

 private:
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
      const bool is_of_training = key.ends_with("_regularizer") || key.ends_with("_constraint");
      if (is_of_training && !value.is_null()) ignored.push_back(key);
    }
    if (!ignored.empty()) {
      options_.note(fmt::format("has a {}, which Holdfast leaves out", fmt::join(ignored, " and a ")));
    }
  }

  void check_axes(const LayerRow& row) const {
    const bool is_known = !call_.inputs.empty() && call_.inputs.front();
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
    for (const Json& axis : step.config["axis"]) {
      const auto place = axis.get<std::int64_t>();
      axes.insert(place < 0 ? place + static_cast<std::int64_t>(sample.size()) : place);
    }
    SampleShape kept;
    for (const std::int64_t axis : axes) kept.push_back(sample[static_cast<std::size_t>(axis)]);
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

}  // namespace

std::string known_keras_classes() {
  std::set<std::string> classes = {"Identity", "InputLayer"};
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
