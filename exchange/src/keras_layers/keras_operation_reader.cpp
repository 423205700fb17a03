// Functions stand between layers. Those of elements and reductions are operations here, and activations are layers. See
// docs/decisions/exchange.md.

#include "keras_layers/keras_operation_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "keras_layers/keras_activation.h"
#include "keras_layers/keras_option_reader.h"

namespace holdfast::format {
namespace {

using Steps = std::vector<HoldfastStep>;

struct NamePair {
  std::string_view keras;
  std::string_view holdfast;
};

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
                                           NamePair{"Softplus", "softplus"}, NamePair{"Sign", "sign"},
                                           NamePair{"Equal", "equal"},       NamePair{"Where", "select"}};
constexpr std::array kReductions = {NamePair{"Sum", "sum"}, NamePair{"Mean", "mean"}, NamePair{"Max", "largest"},
                                    NamePair{"Amax", "largest"}};

template <std::size_t kCount>
std::optional<std::string> holdfast_name(const std::array<NamePair, kCount>& names, std::string_view keras) {
  for (const NamePair& pair : names) {
    if (pair.keras == keras) return std::string(pair.holdfast);
  }
  return std::nullopt;
}

// Reads one call of a function.
class FunctionReader {
 public:
  FunctionReader(const KerasCall& call, std::vector<std::string>& notes)
      : call_(call), config_(call.config), options_(call, notes) {}

  // The order matters where two tables know a name: Relu is an operation of elements, and becomes an activation there.
  Steps read() const {
    const std::string& name = call_.class_name;
    if (const auto function = holdfast_name(kElementOperations, name)) return element_operation(*function);
    if (const auto kind = holdfast_name(kReductions, name)) return reduction(*kind);
    if (name == "Gelu" && flag_member(config_, "approximate", true)) return {element_step("gelu_tanh")};
    if (const auto activation = activation_of_keras_function(name, config_)) {
      return one_step("Activation", {{"activation", *activation}});
    }
    if (name == "Softmax") return one_step("Softmax", {{"axis", options_.axis("axis", -1)}});
    if (name == "LogSoftmax" && options_.axis("axis", -1) == -1) {
      return one_step("Activation", {{"activation", "log_softmax"}});
    }
    if (name == "StopGradient") return one_step("Operation", {{"operation", "stop_gradient"}});
    if (name == "Cast" && text_member(config_, "dtype") == "float32") {
      return one_step("Operation", {{"operation", "cast"}});
    }
    if (name == "Transpose") return one_step("Permute", {{"dims", transposed_axes()}});
    if (name == "ExpandDims" || name == "Squeeze") return {reshape_step(resized_shape(name == "ExpandDims"))};
    if (name == "Clip") return clipping();
    if (name == "Less" || name == "Greater") return comparison("less", name == "Greater");
    if (name == "LessEqual" || name == "GreaterEqual") return comparison("less_equal", name == "GreaterEqual");
    if (name == "GetItem") return part_of_value();
    if (name == "Stack") return stacked();
    if (name == "Concatenate") return one_step("Concatenate", {{"axis", options_.axis("axis", -1)}});
    options_.refuse(
        fmt::format("is a function that has no counterpart; Holdfast has functions of elements, comparisons, sums, "
                    "means, maxima, parts of values, concatenations and stacks, and the layers {}",
                    known_keras_classes()));
  }

 private:
  // The step has no suffix, so it gets the name of the Keras function and its output is found under that name.
  static Steps one_step(const std::string& kind, Json config) {
    return {{.suffix = "", .kind = kind, .config = std::move(config)}};
  }

  static HoldfastStep element_step(const std::string& operation, const Json& constants = Json::array({nullptr})) {
    return {.suffix = "", .kind = "Operation", .config = {{"operation", operation}, {"constants", constants}}};
  }

  Steps element_operation(const std::string& function) const {
    Json constants = Json::array();
    for (const std::optional<double>& argument : call_.arguments) {
      constants.push_back(argument ? Json(*argument) : Json());
    }
    // The axis of samples would meet another axis, where Holdfast aligns the last ones.
    for (const MaybeShape& shape : call_.inputs) {
      if (shape && shape->size() == options_.rank()) continue;
      options_.refuse("takes values with different numbers of axes; give them the same number with Reshape");
    }
    constexpr std::array<std::string_view, 3> kActivationOperations = {"relu", "sigmoid", "tanh"};
    const bool is_activation =
        std::find(kActivationOperations.begin(), kActivationOperations.end(), function) != kActivationOperations.end();
    if (is_activation) return one_step("Activation", {{"activation", function}});
    constexpr std::array<std::string_view, 10> kTwo = {"add",     "subtract", "multiply", "divide",     "power",
                                                       "maximum", "minimum",  "less",     "less_equal", "equal"};
    const bool has_two = std::find(kTwo.begin(), kTwo.end(), function) != kTwo.end();
    // The number of arguments comes from the file, and each operation of Holdfast takes exactly so many.
    const std::size_t wanted = function == "select" ? 3 : has_two ? 2 : 1;
    if (constants.size() != wanted)
      options_.refuse(fmt::format("has {} arguments instead of {}", constants.size(), wanted));
    return {element_step(function, constants)};
  }

  static HoldfastStep reshape_step(const SampleShape& shape) {
    return {.suffix = "", .kind = "Operation", .config = {{"operation", "reshape"}, {"shape", Json(shape)}}};
  }

  // Counted from 1, since the samples stay first.
  Json transposed_axes() const {
    const Json& axes = member(config_, "axes");
    const auto rank = static_cast<std::int64_t>(options_.rank()) + 1;
    std::set<std::int64_t> seen;
    Json order = Json::array();
    for (const Json& entry : axes.is_array() ? axes : Json::array()) {
      const std::int64_t axis = integer_value(entry).value_or(rank);
      const std::int64_t place = axis < 0 ? axis + rank : axis;
      const bool is_first = seen.empty();
      // The axis of samples must come first, and each axis once. `seen` counts the
      // samples too, so its size is checked below.
      const bool is_valid = place >= 0 && place < rank && seen.insert(place).second && (place == 0) == is_first;
      if (!is_valid) options_.refuse("moves the axis of samples; leave that axis first");
      if (place != 0) order.push_back(place);
    }
    if (static_cast<std::int64_t>(seen.size()) != rank) {
      options_.refuse("does not say all axes; no value of Holdfast mixes samples");
    }
    return order;
  }

  // With an axis of extent 1 more, or without some of these.
  SampleShape resized_shape(bool is_expanded) const {
    SampleShape shape = known_shape();
    const Json& value = member(config_, "axis");
    // Keras counts the axis of samples, and axes of the result where one is added.
    const auto rank = static_cast<std::int64_t>(shape.size()) + (is_expanded ? 2 : 1);
    std::set<std::int64_t> places;
    for (const Json& entry : value.is_array() ? value : Json::array({value})) {
      const std::int64_t axis = integer_value(entry).value_or(0);
      const std::int64_t place = axis < 0 ? axis + rank : axis;
      const bool is_known =
          place > 0 && place < rank && (is_expanded || shape[static_cast<std::size_t>(place - 1)] == 1);
      if (!is_known) options_.refuse("adds or removes an axis that it cannot; name an axis after that of the samples");
      places.insert(place - 1);
    }
    if (is_expanded) {
      if (places.size() != 1) options_.refuse("adds several axes; add one at a time");
      shape.insert(shape.begin() + *places.begin(), 1);
      return shape;
    }
    // From the last one, so that the places of the others stay right.
    for (auto place = places.rbegin(); place != places.rend(); ++place) shape.erase(shape.begin() + *place);
    if (shape.empty()) options_.refuse("leaves no axis but that of the samples; keep one");
    return shape;
  }

  const SampleShape& known_shape() const {
    // Refuses a value of unknown shape.
    static_cast<void>(options_.rank());
    return *call_.inputs.front();
  }

  Steps clipping() const {
    const Json& least = member(config_, "x_min");
    const Json& most = member(config_, "x_max");
    // Limits that are values would need their shapes to be aligned, which Minimum and Maximum do.
    if (!least.is_number() || !most.is_number()) options_.refuse("clips to limits that are not numbers; use Minimum");
    HoldfastStep first = element_step("maximum", Json::array({nullptr, least}));
    first.suffix = ".0";
    return {std::move(first), element_step("minimum", Json::array({nullptr, most}))};
  }

  // 1 where it is true, else 0: Holdfast has no operations of booleans.
  Steps comparison(const std::string& function, bool is_greater) const {
    Steps steps = element_operation(function);
    if (!is_greater) return steps;
    Json& constants = steps.front().config["constants"];
    // a > b is b < a, and a > b of two values is 0 < a - b; likewise with equality.
    const bool has_number = constants[0].is_number() || constants[1].is_number();
    if (has_number) {
      std::swap(constants[0], constants[1]);
      return steps;
    }
    HoldfastStep difference = element_step("subtract", constants);
    difference.suffix = ".0";
    return {std::move(difference), element_step(function, Json::array({0, nullptr}))};
  }

  // One axis of a value between brackets: elements [begin, end), or one of them, and then the axis goes.
  struct Selection {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool removes_axis = false;
  };

  [[noreturn]] void refuse_index() const {
    options_.refuse(
        "takes a part that Holdfast does not: between brackets may stand all samples, and for the axes after them "
        "numbers, ranges in steps of 1, and an ellipsis");
  }

  static bool is_object_of(const Json& entry, std::string_view class_name) {
    return entry.is_object() && text_member(entry, "class_name") == class_name;
  }

  // A limit of a range, counted from the end where it is negative; Python cuts what lies beyond the ends.
  std::int64_t limit_of(const Json& range, const char* key, std::int64_t otherwise, std::int64_t extent) const {
    const Json& value = member(member(range, "config"), key);
    if (value.is_null()) return otherwise;
    const auto number = integer_value(value);
    if (!number) refuse_index();
    return std::clamp(*number < 0 ? *number + extent : *number, std::int64_t{0}, extent);
  }

  Selection selection_of(const Json& entry, std::int64_t extent) const {
    if (const auto place = entry.is_number_integer() ? integer_value(entry) : std::nullopt) {
      const std::int64_t begin = *place < 0 ? *place + extent : *place;
      if (begin < 0 || begin >= extent) refuse_index();
      return {.begin = begin, .end = begin + 1, .removes_axis = true};
    }
    const Json& step = member(member(entry, "config"), "step");
    if (!is_object_of(entry, "__slice__") || !(step.is_null() || step == 1)) refuse_index();
    const Selection range{.begin = limit_of(entry, "start", 0, extent), .end = limit_of(entry, "stop", extent, extent)};
    if (range.begin >= range.end) refuse_index();
    return range;
  }

  // One entry for each axis, with that of the samples.
  std::vector<Json> entries_of_index() const {
    const std::size_t axes = options_.rank() + 1;
    const Json whole = {{"class_name", "__slice__"}, {"config", Json::object()}};
    std::vector<Json> given;
    if (call_.index == nullptr) refuse_index();
    for (const Json& entry : call_.index->is_array() ? *call_.index : Json::array({*call_.index}))
      given.push_back(entry);
    std::vector<Json> entries;
    for (const Json& entry : given) {
      if (!is_object_of(entry, "__ellipsis__")) {
        entries.push_back(entry);
        continue;
      }
      // It stands for the axes that the others leave.
      const std::size_t others = given.size() - 1;
      for (std::size_t axis = others; axis < axes; ++axis) entries.push_back(whole);
    }
    if (entries.size() > axes) refuse_index();
    entries.resize(axes, whole);
    return entries;
  }

  Steps part_of_value() const {
    const SampleShape& shape = known_shape();
    const std::vector<Json> entries = entries_of_index();
    const Selection samples = selection_of(entries[0], std::numeric_limits<std::int32_t>::max());
    const bool has_all = samples.begin == 0 && samples.end == std::numeric_limits<std::int32_t>::max();
    if (!has_all || samples.removes_axis) refuse_index();
    Steps steps;
    SampleShape kept;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Selection part = selection_of(entries[axis + 1], shape[axis]);
      if (!part.removes_axis) kept.push_back(part.end - part.begin);
      if (part.begin == 0 && part.end == shape[axis]) continue;
      steps.push_back({.suffix = fmt::format(".{}", steps.size()),
                       .kind = "Operation",
                       .config = {{"operation", "slice"}, {"axis", axis}, {"begin", part.begin}, {"end", part.end}}});
    }
    if (kept.empty()) options_.refuse("leaves no axis but that of the samples; keep one");
    if (kept.size() != shape.size()) steps.push_back(reshape_step(kept));
    if (steps.empty()) return one_step("Activation", {{"activation", "linear"}});
    // The last step has the name of the Keras layer, so that its output is found under that name.
    steps.back().suffix = "";
    return steps;
  }

  // One after another along an axis, which is then cut in two.
  Steps stacked() const {
    const SampleShape& shape = known_shape();
    const auto count = static_cast<std::int64_t>(call_.inputs.size());
    for (const MaybeShape& input : call_.inputs) {
      if (input != call_.inputs.front()) options_.refuse("stacks values of different shapes; give them one shape");
    }
    if (shape.empty())
      options_.refuse("stacks values of one number a sample; keep the axis where they are made (keepdims)");
    const auto axes = static_cast<std::int64_t>(shape.size()) + 2;
    const Json& value = member(config_, "axis");
    const std::int64_t given = value.is_null() ? 0 : integer_value(value).value_or(0);
    const std::int64_t place = given < 0 ? given + axes : given;
    if (place < 1 || place >= axes) options_.refuse("stacks along the samples, or along no axis; name another axis");
    const auto axis = static_cast<std::size_t>(place - 1);
    const bool is_last = axis == shape.size();
    SampleShape cut = shape;
    cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(is_last ? axis - 1 : axis), count);
    Steps steps = one_step("Concatenate", {{"axis", is_last ? axis - 1 : axis}});
    steps.front().suffix = ".0";
    // Stacking is a concatenation whose axis is then cut in two. That works along any axis but a new last one, where
    // the values must come after the elements that they belong to.
    steps.push_back(reshape_step(cut));
    if (!is_last) return steps;
    // The values came before the elements of the last axis, and belong after them.
    std::vector<std::size_t> order(cut.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    steps.back().suffix = ".1";
    steps.push_back({.suffix = "", .kind = "Operation", .config = {{"operation", "permute"}, {"order", order}}});
    return steps;
  }

  // Holdfast reduces neighbouring axes, which stay with extent 1, and so in several steps.
  Steps reduction(const std::string& kind) const {
    // A start value would be a part of the sum.
    options_.require("initial", nullptr);
    const auto axes = static_cast<std::int64_t>(options_.rank());
    std::vector<bool> is_reduced(options_.rank());
    const Json& value = member(config_, "axis");
    if (value.is_array() && value.empty()) {
      options_.refuse("goes over an empty list of axes, which changes nothing; leave it out of the model");
    }
    for (const Json& entry : value.is_array() ? value : Json::array({value})) {
      // Null means all axes, with that of the samples, and is refused as axis 0 is.
      const std::int64_t axis = integer_value(entry).value_or(0);
      const std::int64_t place = axis < 0 ? axis + axes : axis - 1;
      if (axis == 0 || place < 0 || place >= axes) {
        options_.refuse(
            "goes over the samples, or over an axis that does not exist; no value of Holdfast mixes samples");
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
  const KerasOptionReader options_;
};

}  // namespace

std::vector<HoldfastStep> steps_of_keras_function(const KerasCall& call, std::vector<std::string>& notes) {
  return FunctionReader(call, notes).read();
}

}  // namespace holdfast::format
