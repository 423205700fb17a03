// Keras has more options than Holdfast. Each that Holdfast lacks must have its default, or else the model would compute
// something else without a word. The file comes from anybody, so every number is checked before it is used.
// docs/decisions/exchange.md

#include "keras_layers/keras_option_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "bytes/byte_source.h"
#include "keras_layers/keras_activation.h"
#include "keras_layers/keras_constraint.h"
#include "keras_layers/keras_initializer.h"
#include "keras_layers/keras_regularizer.h"

namespace holdfast::format {
namespace {

// In 32 bits, so that later arithmetic on such numbers cannot overflow.
std::optional<std::int64_t> small_integer(const Json& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto number = integer_value(value);
  return number && *number >= -kMost && *number <= kMost ? number : std::nullopt;
}

// A value of a stranger, short enough for a sentence.
std::string shown_value(const Json& value) {
  return quoted_text(value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60));
}

bool is_missing(const Json& value) {
  return value.is_null() || (value.is_array() && value.empty());
}

// Options of Keras that change no number, or that the reader looks at for all layers.
constexpr std::array<std::string_view, 22> kOptionsOfAll = {
    "name", "trainable", "dtype", "batch_input_shape", "batch_shape", "input_shape", "lora_rank", "lora_alpha",
    "quantization_config", "synchronized",
    // How it is computed.
    "seed", "implementation", "unroll", "use_cudnn", "fused", "flash_attention", "sparse",
    // What the layer was called on, or limits that only a refused option has.
    "input_length", "query_shape", "key_shape", "value_shape", "renorm_momentum"};

// Those of training alone are noted.
bool is_known(const LayerRow& row, std::string_view key) {
  const auto is_one_of = [&](const auto& names) { return std::ranges::find(names, key) != names.end(); };
  if (is_one_of(kOptionsOfAll) || is_one_of(row.read_by_name) || (row.has_data_format && key == "data_format")) {
    return true;
  }
  const auto has_key = [&](const auto& option) { return option.keras == key; };
  return std::ranges::any_of(row.options, has_key) || std::ranges::any_of(row.requirements, has_key) ||
         std::ranges::any_of(row.options, [&](const LayerOption& option) { return option.old_keras == key; }) ||
         key.ends_with("_regularizer") || key.ends_with("_constraint") || key.ends_with("_initializer");
}

// Numbers of lists in lists, in order. Empty for a value that holds something else.
std::optional<std::vector<float>> flat_numbers(const Json& value, std::size_t depth) {
  constexpr std::size_t kMaxOptionDepth = 8;
  std::vector<float> numbers;
  if (!value.is_array()) {
    const auto number = value.is_null() ? std::nullopt : finite_f32(value, 0);
    if (number) numbers.push_back(*number);
    return number ? std::optional(numbers) : std::nullopt;
  }
  for (const Json& element : value) {
    // A limit, because this function calls itself.
    const auto part = depth < kMaxOptionDepth ? flat_numbers(element, depth + 1) : std::nullopt;
    if (!part) return std::nullopt;
    numbers.insert(numbers.end(), part->begin(), part->end());
  }
  return numbers;
}

}  // namespace

// One switch over all forms: a form without a case is a warning of the compiler, and so an error.
Json KerasOptionReader::value(const LayerRow& row, const LayerOption& option, const Json& read) const {
  using enum OptionForm;
  const Json& found = given(option);
  // Null is an own value of lists of axes: none.
  const bool is_given = !found.is_null() || (option.form == axes && config_.contains(option.keras));
  if (!is_given && option.otherwise == nullptr) refuse_option(option.keras);
  const Json value = is_given ? found : Json::parse(option.otherwise);
  switch (option.form) {
    case flag:
      if (!value.is_boolean()) refuse_option(option.keras);
      return value;
    case count:
      return read_count(option, value, 1);
    case count_or_all:
      return value == -1 ? value : read_count(option, value, 1);
    case OptionForm::number:
    case at_least_0:
    case rate:
    case fraction:
    case epsilon:
      return read_number(option, value);
    case limit:
      return std::vector<Json>{value.is_null() ? value : read_number(option, value)};
    case OptionForm::counts:
      return read_counts(option, value, row.positions, 1);
    case pool_strides:
      // Missing strides are the size of the window, as in Keras.
      return value.is_null() ? member(read, "pool_size") : read_counts(option, value, row.positions, 1);
    case optional_counts:
      return value.is_null() ? value : read_counts(option, value, row.positions, 0);
    case OptionForm::margins:
      return read_margins(option, value, row.positions);
    case OptionForm::padding:
    case causal_padding:
      return read_padding(option, value);
    case OptionForm::axis:
      return axis_in(option.keras, value, rank());
    case OptionForm::axes:
      return read_axes(option, value);
    case OptionForm::two_axes:
      return read_two_axes(option, value);
    case last_axis:
      require_last_axis(option.keras, value);
      return -1;
    case last_axes:
      return read_last_axes(option, value);
    case OptionForm::interpolation:
      if (value != "nearest" && value != "bilinear") refuse_option(option.keras);
      return value;
    case target_shape:
    case order:
      return read_integers(option, value);
    case OptionForm::activation:
      return read_activation(option, value);
    case OptionForm::initializer:
      return read_initializer(option, value);
    case OptionForm::regularizer:
      return read_regularizer(option, value);
    case OptionForm::constraint:
      return read_constraint(option, value);
    case OptionForm::equation:
      return read_text(option, value);
    case OptionForm::letters:
      return value.is_null() ? Json("") : read_text(option, value);
    case OptionForm::partial_shape:
      return read_partial_shape(option, value);
    case OptionForm::statistics:
      return read_statistics(option, value);
    case OptionForm::count_or_none:
      return value.is_null() ? Json(0) : read_count(option, value, 1);
    case OptionForm::cell_activation:
      return read_cell_activation(option, value);
    case OptionForm::score_mode:
      if (value != "dot" && value != "concat") refuse_option(option.keras);
      return value;
  }
  refuse_option(option.keras);
}

const Json& KerasOptionReader::given(const LayerOption& option) const {
  const Json& value = member(config_, option.keras);
  return value.is_null() && !option.old_keras.empty() ? member(config_, option.old_keras) : value;
}

Json KerasOptionReader::read_count(const LayerOption& option, const Json& value, std::int64_t least) const {
  const auto number = small_integer(value);
  if (!number || *number < least) refuse_option(option.keras);
  return *number;
}

Json KerasOptionReader::read_number(const LayerOption& option, const Json& value) const {
  // Keras may write a number in a list of one, or once for each channel.
  const bool is_repeated = value.is_array() && !value.empty() &&
                           std::all_of(value.begin(), value.end(), [&](const Json& one) { return one == value[0]; });
  const Json& plain = is_repeated ? value[0] : value;
  if (!fits_form(option.form, plain)) refuse_option(option.keras);
  return plain;
}

Json KerasOptionReader::read_counts(const LayerOption& option, const Json& value, std::size_t positions,
                                    std::int64_t least) const {
  Json list = Json::array();
  if (value.is_array() && value.size() != positions) refuse_option(option.keras);
  for (std::size_t place = 0; place < positions; ++place) {
    list.push_back(read_count(option, value.is_array() ? value[place] : value, least));
  }
  return list;
}

// Keras's [[top, bottom], [left, right]], [height, width] or one number. Along one axis, [left, right] or one number.
Json KerasOptionReader::read_margins(const LayerOption& option, const Json& value, std::size_t positions) const {
  Json flat = Json::array();
  // A list of two numbers would be both ends of one axis here, and not one number for each axis.
  const Json sides = positions == 1 && value.is_array() && value.size() == 2 ? Json::array({value}) : value;
  if (sides.is_array() && sides.size() != positions) refuse_option(option.keras);
  for (std::size_t place = 0; place < positions; ++place) {
    const Json& side = sides.is_array() ? sides[place] : sides;
    // A single number is the margin of both ends.
    const bool is_pair = side.is_array() && side.size() == 2;
    flat.push_back(read_count(option, is_pair ? side[0] : side, 0));
    flat.push_back(read_count(option, is_pair ? side[1] : side, 0));
  }
  return flat;
}

Json KerasOptionReader::read_padding(const LayerOption& option, const Json& value) const {
  const bool is_causal = value == "causal" && option.form == OptionForm::causal_padding;
  if (value != "same" && value != "valid" && !is_causal) refuse_option(option.keras);
  return value;
}

Json KerasOptionReader::read_integers(const LayerOption& option, const Json& value) const {
  const std::int64_t least = option.form == OptionForm::order ? 1 : -1;
  if (!value.is_array()) refuse_option(option.keras);
  for (const Json& entry : value) {
    const auto number = small_integer(entry);
    // -1 stands for an extent that follows from the others. Zero is never meant.
    if (!number || *number < least || *number == 0) refuse_option(option.keras);
  }
  return value;
}

// An empty text stands for a factor of 0, which changes nothing, so it becomes null.
Json KerasOptionReader::read_regularizer(const LayerOption& option, const Json& value) const {
  if (value.is_null()) return value;
  const auto found = regularizer_of_keras(value);
  if (found) return found->empty() ? Json() : Json(*found);
  // Not an error: the outputs of the model do not depend on it.
  note(fmt::format("has a {}, which Holdfast leaves out", option.keras));
  return nullptr;
}

// Noted and not refused, as a regularizer: what it limits are weights in training.
Json KerasOptionReader::read_constraint(const LayerOption& option, const Json& value) const {
  if (value.is_null()) return value;
  if (auto found = constraint_of_keras(value)) return *found;
  note(fmt::format("has a {}, which Holdfast leaves out", option.keras));
  return nullptr;
}

Json KerasOptionReader::read_initializer(const LayerOption& option, const Json& value) const {
  if (auto found = initializer_of_keras(value)) return *found;
  const Json otherwise = *initializer_of_keras(Json::parse(option.otherwise));
  const std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "class_name");
  // Not an error: the weights of the file replace what an initializer drew.
  note(fmt::format("has the {} {}, which Holdfast does not have: if it draws new weights, it takes {}", option.keras,
                   quoted_text(name.substr(0, 60)), otherwise.get<std::string>()));
  return otherwise;
}

Json KerasOptionReader::read_activation(const LayerOption& option, const Json& value) const {
  const auto found = activation_of_keras(value);
  // A function of an application has no name that Holdfast could know.
  if (!found) refuse_option(option.keras);
  return *found;
}

Json KerasOptionReader::read_cell_activation(const LayerOption& option, const Json& value) const {
  const Json found = read_activation(option, value);
  if (!is_cell_activation(found)) refuse_option(option.keras);
  return found;
}

Json KerasOptionReader::read_axes(const LayerOption& option, const Json& value) const {
  const bool is_shared = option.keras == "shared_axes";
  Json list = Json::array();
  if (value.is_null()) return list;
  for (const Json& entry : value.is_array() ? value : Json::array({value})) {
    const std::int64_t axis = axis_in(option.keras, entry, rank());
    // Keras takes 1 from each shared axis, so that -1 is not the last one there.
    if (is_shared && axis < 0) refuse_option(option.keras);
    list.push_back(axis);
  }
  if (list.size() > rank()) refuse_option(option.keras);
  return list;
}

// Counted from the last one, in their order.
Json KerasOptionReader::read_last_axes(const LayerOption& option, const Json& value) const {
  if (value == -1) return Json::array({-1});
  const auto axes = static_cast<std::int64_t>(rank());
  std::set<std::int64_t> places;
  // Whether some axes are counted from the first and some from the last. Keras sorts them as they stand.
  std::set<bool> are_negative;
  for (const Json& entry : value.is_array() ? value : Json::array({value})) {
    const std::int64_t axis = axis_in(option.keras, entry, rank());
    are_negative.insert(axis < 0);
    if (!places.insert(axis < 0 ? axis : axis - axes).second) refuse_option(option.keras);
  }
  // Keras sorts these numbers, and so gives gamma another order of axes where some count from the end.
  if (are_negative.size() > 1) refuse_option(option.keras);
  const bool are_last = !places.empty() && *places.begin() == -static_cast<std::int64_t>(places.size());
  if (are_last) return Json(std::vector<std::int64_t>(places.begin(), places.end()));
  refuse(fmt::format("normalizes the axes {}, and Holdfast the last ones alone; permute the value before it",
                     shown_value(value)));
}

Json KerasOptionReader::read_two_axes(const LayerOption& option, const Json& value) const {
  const bool is_pair = value.is_array() && value.size() == 2;
  if (!is_pair && !value.is_number()) refuse_option(option.keras);
  if (call_.inputs.size() != 2 || !call_.inputs[0] || !call_.inputs[1]) refuse("needs two values of known shapes");
  Json list = Json::array();
  for (std::size_t i = 0; i < 2; ++i) {
    list.push_back(axis_in(option.keras, is_pair ? value[i] : value, call_.inputs[i]->size()));
  }
  return list;
}

Json KerasOptionReader::read_text(const LayerOption& option, const Json& value) const {
  // Longer than any equation of an array's axes.
  constexpr std::size_t kMostLetters = 200;
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMostLetters) refuse_option(option.keras);
  return value;
}

Json KerasOptionReader::read_partial_shape(const LayerOption& option, const Json& value) const {
  Json list = Json::array();
  for (const Json& entry : value.is_array() ? value : Json::array({value})) {
    list.push_back(entry.is_null() ? Json(-1) : read_count(option, entry, 1));
  }
  return list;
}

Json KerasOptionReader::read_statistics(const LayerOption& option, const Json& value) const {
  if (value.is_null()) return Json::array();
  const auto numbers = flat_numbers(value, 0);
  if (!numbers || numbers->empty()) refuse_option(option.keras);
  for (const float number : *numbers) {
    if (option.keras == "variance" && number < 0) refuse_option(option.keras);
  }
  return *numbers;
}

std::int64_t KerasOptionReader::axis_in(std::string_view key, const Json& value, std::size_t rank) const {
  // Keras writes an axis as a number, or as a list of one.
  const auto axis = small_integer(value.is_array() && value.size() == 1 ? value[0] : value);
  const auto axes = static_cast<std::int64_t>(rank);
  // Axis 0 counts the samples in Keras, and no layer of Holdfast may mix them.
  if (!axis || *axis == 0 || *axis < -axes || *axis > axes) refuse_option(key);
  return *axis < 0 ? *axis : *axis - 1;
}

std::int64_t KerasOptionReader::axis(std::string_view key, std::int64_t otherwise) const {
  const Json& value = member(config_, key);
  return axis_in(key, value.is_null() ? Json(otherwise) : value, rank());
}

void KerasOptionReader::require_last_axis(std::string_view key, const Json& value) const {
  const Json& axis = value.is_array() && value.size() == 1 ? value[0] : value;
  // Keras counts the axis of samples, so the last axis has the number of axes of a sample.
  if (axis != -1 && axis != rank()) refuse_option(key);
}

// A missing option passes: each value that is required is Keras's default.
void KerasOptionReader::require(std::string_view key, const Json& expected) const {
  const Json& value = member(config_, key);
  if (!is_missing(value) && value != expected) refuse_option(key);
}

void KerasOptionReader::refuse_unknown(const LayerRow& row) const {
  for (const auto& item : config_.items()) {
    const std::string& key = item.key();
    if (is_missing(item.value()) || item.value() == false || is_known(row, key)) continue;
    refuse_option(key);
  }
}

std::size_t KerasOptionReader::rank() const {
  if (call_.inputs.empty() || !call_.inputs.front()) {
    refuse("gets a value whose shape cannot be derived; its options, or those before it, do not fit their inputs");
  }
  return call_.inputs.front()->size();
}

void KerasOptionReader::note(const std::string& problem) const {
  notes_.push_back(fmt::format("layer {} {}", quoted_text(call_.path), problem));
}

void KerasOptionReader::refuse(const std::string& problem) const {
  refuse_keras_layer(call_.path, call_.class_name, problem);
}

void KerasOptionReader::refuse_option(std::string_view key) const {
  if (key == "mask_zero") {
    refuse(
        "has the option mask_zero, and masks are inputs in Holdfast; build the model with an input for the mask, which "
        "recurrent layers take with takes_mask, and attentions with takes_padding_mask");
  }
  refuse(
      fmt::format("has the option {} = {}, which Holdfast does not have; use its default, or build the model with "
                  "another layer",
                  key, shown_value(member(config_, key))));
}

}  // namespace holdfast::format
