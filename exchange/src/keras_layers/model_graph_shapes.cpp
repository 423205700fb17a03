// The options come from a file of anybody, so every number is checked before it is used. A shape that cannot be
// derived is missing here, and callers that need it say which layer they need it for.

#include "keras_layers/model_graph_shapes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

using Shapes = std::span<const MaybeShape>;

std::optional<std::int64_t> extent(const Json& value, std::int64_t least = 1) {
  const auto number = integer_value(value);
  return number && *number >= least && *number <= kMaxExtent ? number : std::nullopt;
}

// Empty unless the member is a list of integers, `count` of them unless that is 0.
std::optional<std::vector<std::int64_t>> integers(const Json& config, const char* key, std::size_t count,
                                                  std::int64_t least) {
  const Json& list = member(config, key);
  if (!list.is_array() || (count != 0 && list.size() != count)) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const Json& value : list) {
    const auto number = extent(value, least);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

MaybeShape checked(SampleShape shape) {
  if (shape.size() > kMaxAxes) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    // Divided first: a product of extents of an unknown file may overflow.
    if (size < 1 || size > kMaxElements / elements) return std::nullopt;
    elements *= size;
  }
  return shape;
}

std::int64_t elements_of(const SampleShape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

MaybeShape with_last(SampleShape shape, std::optional<std::int64_t> last) {
  if (shape.empty() || !last) return std::nullopt;
  shape.back() = *last;
  return checked(std::move(shape));
}

// The lists that say how a window moves along the axes of positions.
struct WindowLists {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilation;
};

std::optional<WindowLists> window_lists(const SampleShape& image, const Json& config, const char* size_key) {
  // What a window with gaps reaches over. An extent of 2^20 is more than any image has.
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  if (image.size() < 2) return std::nullopt;
  const std::size_t positions = image.size() - 1;
  const auto sizes = integers(config, size_key, positions, 1);
  const auto strides = integers(config, "strides", positions, 1);
  const auto dilation = member(config, "dilation_rate").is_null()
                            ? std::optional(std::vector<std::int64_t>(positions, 1))
                            : integers(config, "dilation_rate", positions, 1);
  if (!sizes || !strides || !dilation) return std::nullopt;
  for (std::size_t axis = 0; axis < positions; ++axis) {
    if ((*sizes)[axis] > kMost || (*strides)[axis] > kMost || (*dilation)[axis] > kMost) return std::nullopt;
  }
  return WindowLists{*sizes, *strides, *dilation};
}

MaybeShape windows(const SampleShape& image, const Json& config, const char* size_key) {
  const auto lists = window_lists(image, config, size_key);
  if (!lists) return std::nullopt;
  // Causal padding keeps as many places as "same", all of them before the first.
  const bool is_padded = text_member(config, "padding") != "valid" && !text_member(config, "padding").empty();
  SampleShape result = image;
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    const std::int64_t size = (lists->sizes[axis] - 1) * lists->dilation[axis] + 1;
    // No window fits, and the formula below would give 1 or less.
    if (!is_padded && image[axis] < size) return std::nullopt;
    // ceil(extent / stride) with padding "same", and otherwise the number of windows that fit.
    result[axis] = ((is_padded ? image[axis] - 1 : image[axis] - size)) / lists->strides[axis] + 1;
  }
  return result;
}

MaybeShape convolved(const SampleShape& image, const Json& config) {
  const MaybeShape result = windows(image, config, "kernel_size");
  return result ? with_last(*result, extent(member(config, "filters"))) : std::nullopt;
}

MaybeShape convolved_by_channel(const SampleShape& image, const Json& config) {
  const MaybeShape result = windows(image, config, "kernel_size");
  const auto multiplier = extent(member(config, "depth_multiplier"));
  if (!result || !multiplier || result->back() > kMaxElements / *multiplier) return std::nullopt;
  return with_last(*result, result->back() * *multiplier);
}

// As keras.layers.Conv2DTranspose: without an output padding, each step adds a stride, and "valid" what a window has
// beyond it.
MaybeShape convolved_back(const SampleShape& image, const Json& config) {
  const auto lists = window_lists(image, config, "kernel_size");
  if (!lists) return std::nullopt;
  const bool is_same = text_member(config, "padding") == "same";
  const bool has_padding = !member(config, "output_padding").is_null();
  const auto padding = has_padding ? integers(config, "output_padding", image.size() - 1, 0) : std::nullopt;
  if (has_padding && !padding) return std::nullopt;
  SampleShape result = image;
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    const std::int64_t size = (lists->sizes[axis] - 1) * lists->dilation[axis] + 1;
    const std::int64_t stride = lists->strides[axis];
    // An extent has at most 40 bits and a stride 20, so no product overflows.
    if (has_padding) {
      const std::int64_t removed = is_same ? 2 * (size / 2) : 0;
      result[axis] = (image[axis] - 1) * stride + size - removed + (*padding)[axis];
    } else {
      result[axis] = image[axis] * stride + (is_same ? 0 : std::max<std::int64_t>(size - stride, 0));
    }
  }
  const MaybeShape whole = checked(std::move(result));
  return whole ? with_last(*whole, extent(member(config, "filters"))) : std::nullopt;
}

MaybeShape pooled(const SampleShape& image, const Json& config) {
  return windows(image, config, "pool_size");
}

MaybeShape globally_pooled(const SampleShape& shape, const Json& config) {
  // There must be at least one axis of positions besides that of the channels.
  if (shape.size() < 2) return std::nullopt;
  if (!flag_member(config, "keepdims", false)) return SampleShape{shape.back()};
  SampleShape result(shape.size(), 1);
  result.back() = shape.back();
  return result;
}

// The extents of the output are options, or those of the input's axis with the same letter.
MaybeShape summed_over(const SampleShape& shape, const Json& config) {
  const std::string equation = text_member(config, "equation");
  const std::size_t comma = equation.find(',');
  const std::size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return std::nullopt;
  // What stands for the samples.
  const std::size_t samples = equation.starts_with("...") ? 3 : 1;
  if (comma < samples || equation.size() < arrow + 2 + samples) return std::nullopt;
  const std::string input = equation.substr(samples, comma - samples);
  const std::string output = equation.substr(arrow + 2 + samples);
  const auto extents = integers(config, "output_shape", 0, -1);
  if (!extents || extents->size() != output.size() || shape.size() < input.size()) return std::nullopt;
  const auto before = static_cast<std::ptrdiff_t>(shape.size() - input.size());
  if (samples == 1 && before != 0) return std::nullopt;
  SampleShape result(shape.begin(), shape.begin() + before);
  for (std::size_t axis = 0; axis < output.size(); ++axis) {
    const std::size_t place = input.find(output[axis]);
    const bool is_free = (*extents)[axis] == -1;
    if (is_free && place == std::string::npos) return std::nullopt;
    result.push_back(is_free ? shape[static_cast<std::size_t>(before) + place] : (*extents)[axis]);
  }
  return checked(std::move(result));
}

MaybeShape adaptively_pooled(const SampleShape& shape, const Json& config) {
  if (shape.size() < 2) return std::nullopt;
  auto result = integers(config, "output_size", shape.size() - 1, 1);
  if (!result) return std::nullopt;
  result->push_back(shape.back());
  return checked(*result);
}

MaybeShape reshaped(const SampleShape& shape, const Json& config, const char* key) {
  auto target = integers(config, key, 0, -1);
  if (!target) return std::nullopt;
  // One extent may follow from the others. A second -1 stays and is refused by checked().
  const auto free = std::find(target->begin(), target->end(), -1);
  if (free != target->end()) {
    *free = 1;
    const MaybeShape known = checked(*target);
    if (!known || elements_of(shape) % elements_of(*known) != 0) return std::nullopt;
    *free = elements_of(shape) / elements_of(*known);
  }
  const MaybeShape result = checked(*target);
  return result && elements_of(*result) == elements_of(shape) ? result : std::nullopt;
}

MaybeShape permuted(const SampleShape& shape, const Json& config, const char* key, std::int64_t first) {
  const auto order = integers(config, key, 0, first);
  if (!order || order->size() != shape.size()) return std::nullopt;
  SampleShape result;
  std::vector<bool> is_used(shape.size());
  for (const std::int64_t axis : *order) {
    const auto place = static_cast<std::size_t>(axis - first);
    // Each axis once, or elements would be lost or doubled.
    if (place >= shape.size() || is_used[place]) return std::nullopt;
    is_used[place] = true;
    result.push_back(shape[place]);
  }
  return result;
}

MaybeShape with_margins(const SampleShape& image, const Json& config, const char* key, std::int64_t sign) {
  const auto margins = integers(config, key, 0, 0);
  if (!margins || margins->size() % 2 != 0 || image.size() != margins->size() / 2 + 1) return std::nullopt;
  SampleShape result = image;
  // A cropping that leaves nothing gives an extent below 1, which checked() refuses.
  for (std::size_t axis = 0; axis + 1 < image.size(); ++axis) {
    result[axis] += sign * ((*margins)[2 * axis] + (*margins)[2 * axis + 1]);
  }
  return checked(std::move(result));
}

MaybeShape enlarged(const SampleShape& image, const Json& config) {
  const auto one = extent(member(config, "size"));
  const auto list = one ? std::optional(std::vector<std::int64_t>{*one}) : integers(config, "size", 0, 1);
  if (!list || image.size() != list->size() + 1) return std::nullopt;
  SampleShape result = image;
  for (std::size_t axis = 0; axis < list->size(); ++axis) {
    // Checked first, so that no product overflows.
    if (image[axis] > kMaxElements / (*list)[axis]) return std::nullopt;
    result[axis] *= (*list)[axis];
  }
  return checked(std::move(result));
}

// Aligned at the last axes.
MaybeShape broadcast(const SampleShape& a, const SampleShape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  SampleShape result(rank, 1);
  for (const SampleShape* shape : {&a, &b}) {
    for (std::size_t axis = 0; axis < shape->size(); ++axis) {
      std::int64_t& size = result[rank - shape->size() + axis];
      // An extent of 1 fits any other one, on both sides.
      if (size == 1) size = (*shape)[axis];
      if ((*shape)[axis] != 1 && (*shape)[axis] != size) return std::nullopt;
    }
  }
  return checked(std::move(result));
}

MaybeShape broadcast_all(Shapes inputs) {
  MaybeShape result = inputs.front();
  for (const MaybeShape& input : inputs.subspan(1)) {
    if (!result) return std::nullopt;
    result = broadcast(*result, *input);
  }
  return result;
}

std::optional<std::size_t> axis_member(const Json& config, const SampleShape& shape) {
  const auto axis = integer_value(member(config, "axis"));
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (!axis || *axis < -rank || *axis >= rank) return std::nullopt;
  // A negative axis counts from the end.
  return static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis);
}

MaybeShape concatenated(Shapes inputs, const Json& config) {
  SampleShape result = *inputs.front();
  const auto axis = axis_member(config, result);
  if (!axis) return std::nullopt;
  for (const MaybeShape& input : inputs.subspan(1)) {
    if (input->size() != result.size()) return std::nullopt;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (i != *axis && (*input)[i] != result[i]) return std::nullopt;
    }
    result[*axis] += (*input)[*axis];
  }
  return checked(std::move(result));
}

MaybeShape sliced(SampleShape shape, const Json& config) {
  const auto axis = axis_member(config, shape);
  const auto begin = extent(member(config, "begin"), 0);
  const auto end = extent(member(config, "end"), 0);
  if (!axis || !begin || !end || *begin >= *end || *end > shape[*axis]) return std::nullopt;
  shape[*axis] = *end - *begin;
  return shape;
}

MaybeShape padded(SampleShape shape, const Json& config) {
  const auto axis = axis_member(config, shape);
  const auto before = extent(member(config, "before"), 0);
  const auto after = extent(member(config, "after"), 0);
  if (!axis || !before || !after) return std::nullopt;
  shape[*axis] += *before + *after;
  return checked(std::move(shape));
}

// Reduced axes stay, with extent 1.
MaybeShape reduced(SampleShape shape, const Json& config) {
  const auto axes = integers(config, "axes", 2, 0);
  if (!axes || (*axes)[0] >= (*axes)[1] || (*axes)[1] > static_cast<std::int64_t>(shape.size())) return std::nullopt;
  std::fill(shape.begin() + (*axes)[0], shape.begin() + (*axes)[1], 1);
  return shape;
}

MaybeShape repeated(const SampleShape& shape, const Json& config) {
  const auto count = extent(member(config, "n"));
  // Keras's RepeatVector takes vectors alone.
  if (shape.size() != 1 || !count) return std::nullopt;
  return checked({*count, shape.front()});
}

// All axes but those that are multiplied; a product of two vectors keeps an axis.
MaybeShape dotted(Shapes inputs, const Json& config) {
  const Json& axes = member(config, "axes");
  if (inputs.size() != 2 || !axes.is_array() || axes.size() != 2) return std::nullopt;
  SampleShape result;
  std::array<std::int64_t, 2> common = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto rank = static_cast<std::int64_t>(inputs[i]->size());
    const auto axis = integer_value(axes[i]);
    if (!axis || *axis < -rank || *axis >= rank) return std::nullopt;
    const auto place = static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis);
    common[i] = (*inputs[i])[place];
    for (std::size_t other = 0; other < inputs[i]->size(); ++other) {
      if (other != place) result.push_back((*inputs[i])[other]);
    }
  }
  if (common[0] != common[1]) return std::nullopt;
  if (result.empty()) result.push_back(1);
  return checked(std::move(result));
}

MaybeShape embedded(const SampleShape& shape, const Json& config) {
  SampleShape result = shape;
  const auto width = extent(member(config, "width"));
  if (!width) return std::nullopt;
  result.push_back(*width);
  return checked(std::move(result));
}

MaybeShape recurrent(const SampleShape& sequence, const Json& config) {
  auto units = extent(member(config, "units"));
  if (sequence.size() != 2 || !units) return std::nullopt;
  // Both directions side by side.
  if (text_member(config, "merge_mode") == "concat") units = 2 * *units;
  SampleShape result = {*units};
  if (flag_member(config, "return_sequences", false)) result.insert(result.begin(), sequence.front());
  return checked(std::move(result));
}

MaybeShape after_operation(Shapes inputs, const Json& config) {
  const SampleShape& first = *inputs.front();
  const std::string operation = text_member(config, "operation");
  if (operation == "reshape") return reshaped(first, config, "shape");
  if (operation == "sum" || operation == "mean" || operation == "largest") return reduced(first, config);
  if (operation == "slice") return sliced(first, config);
  if (operation == "pad") return padded(first, config);
  if (operation == "concatenate") return concatenated(inputs, config);
  if (operation == "permute") return permuted(first, config, "order", 0);
  if (operation == "broadcast") {
    const auto target = integers(config, "shape", 0, 1);
    const MaybeShape result = target ? broadcast(first, *target) : std::nullopt;
    // A value with larger extents would enlarge the target, which is not what the operation asks for.
    return result == target ? result : std::nullopt;
  }
  // All other operations are functions of elements.
  return broadcast_all(inputs);
}

using ShapeOfOne = MaybeShape (*)(const SampleShape&, const Json&);

// Kinds of one to three axes of positions have one formula, and the same name but for the number.
std::string_view without_rank(std::string_view kind) {
  for (const std::string_view rank : {"1D", "2D", "3D"}) {
    if (kind.ends_with(rank)) return kind.substr(0, kind.size() - rank.size());
  }
  return kind;
}

constexpr std::array<std::pair<std::string_view, ShapeOfOne>, 22> kOneInput = {{
    {"Dense",
     [](const SampleShape& shape, const Json& config) { return with_last(shape, extent(member(config, "units"))); }},
    {"EinsumDense", summed_over},
    {"Embedding", embedded},
    {"Conv", convolved},
    {"SeparableConv", convolved},
    {"DepthwiseConv", convolved_by_channel},
    {"Conv1DTranspose", convolved_back},
    {"Conv2DTranspose", convolved_back},
    {"Conv3DTranspose", convolved_back},
    {"MaxPooling", pooled},
    {"AveragePooling", pooled},
    {"GlobalAveragePooling", globally_pooled},
    {"GlobalMaxPooling", globally_pooled},
    {"AdaptiveAveragePooling", adaptively_pooled},
    {"AdaptiveMaxPooling", adaptively_pooled},
    {"Flatten", [](const SampleShape& shape, const Json&) -> MaybeShape { return SampleShape{elements_of(shape)}; }},
    {"Reshape", [](const SampleShape& shape, const Json& config) { return reshaped(shape, config, "target_shape"); }},
    {"Permute", [](const SampleShape& shape, const Json& config) { return permuted(shape, config, "dims", 1); }},
    {"RepeatVector", repeated},
    {"ZeroPadding",
     [](const SampleShape& shape, const Json& config) { return with_margins(shape, config, "padding", 1); }},
    {"Cropping",
     [](const SampleShape& shape, const Json& config) { return with_margins(shape, config, "cropping", -1); }},
    {"UpSampling", enlarged},
}};

constexpr std::array<std::string_view, 20> kSameShape = {"Activation",
                                                         "AlphaDropout",
                                                         "BatchNormalization",
                                                         "Dropout",
                                                         "ELU",
                                                         "GaussianDropout",
                                                         "GaussianNoise",
                                                         "GroupNormalization",
                                                         "LeakyReLU",
                                                         "LayerNormalization",
                                                         "Normalization",
                                                         "PReLU",
                                                         "RMSNormalization",
                                                         "ReLU",
                                                         "Rescaling",
                                                         "Softmax",
                                                         "SpatialDropout1D",
                                                         "SpatialDropout2D",
                                                         "SpatialDropout3D",
                                                         "UnitNormalization"};

// The kinds that take several values, of which the first gives the shape.
bool is_attention_of_heads(const std::string& kind) {
  return kind == "MultiHeadAttention" || kind == "GroupQueryAttention";
}

bool is_recurrent(const std::string& kind) {
  return kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN" || kind == "Bidirectional";
}

MaybeShape attended(Shapes inputs) {
  const SampleShape& query = *inputs[0];
  const SampleShape& value = inputs.size() > 1 ? *inputs[1] : query;
  return query.size() == 2 && value.size() == 2 ? with_last(query, value.back()) : std::nullopt;
}

constexpr std::array<std::string_view, 6> kMerging = {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"};

}  // namespace

MaybeShape shape_after(const ModelGraphLayer& layer, Shapes inputs, bool is_reversed) {
  const bool are_known = std::all_of(inputs.begin(), inputs.end(), [](const MaybeShape& shape) { return !!shape; });
  // A missing shape goes on through all later layers, up to one that needs it.
  if (inputs.empty() || !are_known) return std::nullopt;
  const bool is_same = std::find(kSameShape.begin(), kSameShape.end(), layer.kind) != kSameShape.end();
  if (is_same) return inputs.size() == 1 ? inputs.front() : std::nullopt;
  if (layer.kind == "ReversibleEmbedding" && inputs.size() == 1) {
    if (!is_reversed) return embedded(*inputs.front(), layer.config);
    return with_last(*inputs.front(), extent(member(layer.config, "vocabulary")));
  }
  for (const auto& [kind, function] : kOneInput) {
    const bool is_kind = kind == layer.kind || kind == without_rank(layer.kind);
    if (is_kind && inputs.size() == 1) return function(*inputs.front(), layer.config);
  }
  if (is_attention_of_heads(layer.kind)) return inputs.front()->size() == 2 ? inputs.front() : std::nullopt;
  if (layer.kind == "Attention" || layer.kind == "AdditiveAttention") return attended(inputs);
  if (is_recurrent(layer.kind)) return recurrent(*inputs.front(), layer.config);
  if (layer.kind == "Dot") return dotted(inputs, layer.config);
  if (layer.kind == "Concatenate") return concatenated(inputs, layer.config);
  if (layer.kind == "Operation") return after_operation(inputs, layer.config);
  return std::find(kMerging.begin(), kMerging.end(), layer.kind) == kMerging.end() ? std::nullopt
                                                                                   : broadcast_all(inputs);
}

std::size_t output_count(const ModelGraphLayer& layer) {
  const bool has_states = is_recurrent(layer.kind) && flag_member(layer.config, "return_state", false);
  if (!has_states) return 1;
  const bool is_both_ways = layer.kind == "Bidirectional";
  const std::string kind = is_both_ways ? text_member(layer.config, "layer") : layer.kind;
  return 1 + (kind == "LSTM" ? 2U : 1U) * (is_both_ways ? 2U : 1U);
}

MaybeShape shape_of_output(const ModelGraphLayer& layer, const MaybeShape& first, std::size_t index) {
  if (index == 0) return first;
  // The states. No other layer here has a second output, so a file that names one has no shape for it.
  const auto units = extent(member(layer.config, "units"));
  return index < output_count(layer) && units ? MaybeShape(SampleShape{*units}) : std::nullopt;
}

bool keeps_integers(const ModelGraphLayer& layer) {
  constexpr std::array<std::string_view, 6> kOperations = {"reshape", "permute",     "slice",
                                                           "pad",     "concatenate", "broadcast"};
  const std::string& kind = layer.kind;
  if (kind == "Operation") {
    return std::find(kOperations.begin(), kOperations.end(), text_member(layer.config, "operation")) !=
           kOperations.end();
  }
  return kind == "Flatten" || kind == "Reshape" || kind == "Permute" || kind == "Concatenate" ||
         kind.starts_with("Cropping");
}

std::vector<bool> reversed_calls(const ModelGraph& graph) {
  std::vector<bool> are_integers, are_reversed;
  for (const ModelGraphCall& call : graph.calls) {
    const auto is_integer = [&](const ModelGraphSource& source) {
      if (source.call != ModelGraphSource::kModelInput) return bool(are_integers[source.call]);
      const std::string& dtype = graph.inputs[source.index].dtype;
      return dtype != "f32" && dtype != "bf16";
    };
    const ModelGraphLayer& layer = graph.layers[call.layer];
    const bool takes_integers = !call.inputs.empty() && is_integer(call.inputs.front());
    are_integers.push_back(takes_integers && keeps_integers(layer));
    are_reversed.push_back(layer.kind == "ReversibleEmbedding" && !takes_integers);
  }
  return are_reversed;
}

std::vector<MaybeShape> input_shapes(const ModelGraph& graph, const ModelGraphCall& call, Shapes shapes) {
  std::vector<MaybeShape> inputs;
  for (const ModelGraphSource& source : call.inputs) {
    if (source.call == ModelGraphSource::kModelInput) {
      inputs.emplace_back(graph.inputs[source.index].shape);
    } else {
      const ModelGraphLayer& layer = graph.layers[graph.calls[source.call].layer];
      inputs.push_back(shape_of_output(layer, shapes[source.call], source.index));
    }
  }
  return inputs;
}

std::vector<MaybeShape> shapes_of_calls(const ModelGraph& graph) {
  std::vector<MaybeShape> shapes;
  const std::vector<bool> are_reversed = reversed_calls(graph);
  for (const ModelGraphCall& call : graph.calls) {
    const std::vector<MaybeShape> inputs = input_shapes(graph, call, shapes);
    shapes.push_back(shape_after(graph.layers[call.layer], inputs, are_reversed[shapes.size()]));
  }
  return shapes;
}

}  // namespace holdfast::format
