// The options come from a file of anybody, so every number is checked before it is used. A shape that cannot be
// derived is missing here, and callers that need it say which layer they need it for.

#include "keras_layers/layer_shapes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "keras_layers/position_shapes.h"

namespace holdfast::format {
namespace {

using Shapes = std::span<const MaybeShape>;

std::int64_t elements_of(const SampleShape& shape) {
  // Without a check: each shape here has passed checked(), which limits the product of its extents.
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

// The extents of the output are options, or those of the input's axis with the same letter. The equation is split as
// EinsumDense does it, and one that it would refuse has no shape here.
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
  const auto extents = extent_list(config, "output_shape", 0, -1);
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

MaybeShape reshaped(const SampleShape& shape, const Json& config, const char* key) {
  auto target = extent_list(config, key, 0, -1);
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
  const auto order = extent_list(config, key, 0, first);
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
  const auto axes = extent_list(config, "axes", 2, 0);
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
  // Extents of the two axes that are multiplied.
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
  // A vector for each id, as a new last axis.
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
    const auto target = extent_list(config, "shape", 0, 1);
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

// Each element has one of its own in the output, or is a part of a row that is normalized.
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

// The values of an attention: those among its inputs that are not masks, or the query itself.
MaybeShape value_of_attention(const ModelGraphLayer& layer, Shapes inputs) {
  std::size_t masks = 0;
  // Masks are the last inputs, and options say which of them there are.
  for (const char* mask : {"attention_mask", "padding_mask"}) masks += flag_member(layer.config, mask, false) ? 1 : 0;
  return inputs.size() > masks + 1 ? inputs[1] : inputs[0];
}

MaybeShape attended(const ModelGraphLayer& layer, Shapes inputs) {
  const MaybeShape value = value_of_attention(layer, inputs);
  return inputs[0]->size() == 2 && value->size() == 2 ? with_last(*inputs[0], value->back()) : std::nullopt;
}

constexpr std::array<std::string_view, 6> kMerging = {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"};

// What an attention gives each key, for each query and in each head.
MaybeShape shares_of(const ModelGraphLayer& layer, Shapes inputs) {
  const SampleShape& query = *inputs[0];
  const MaybeShape value = value_of_attention(layer, inputs);
  if (query.size() != 2 || value->size() != 2) return std::nullopt;
  if (!is_attention_of_heads(layer.kind)) return checked({query.front(), value->front()});
  const bool has_groups = layer.kind == "GroupQueryAttention";
  const auto heads = extent(member(layer.config, has_groups ? "num_query_heads" : "num_heads"));
  return heads ? checked({*heads, query.front(), value->front()}) : std::nullopt;
}

}  // namespace

MaybeShape shape_after(const ModelGraphLayer& layer, Shapes inputs, bool is_reversed) {
  const bool are_known = std::all_of(inputs.begin(), inputs.end(), [](const MaybeShape& shape) { return !!shape; });
  // A missing shape goes on through all later layers, up to one that needs it.
  if (inputs.empty() || !are_known) return std::nullopt;
  const bool is_same = std::find(kSameShape.begin(), kSameShape.end(), layer.kind) != kSameShape.end();
  if (is_same) return inputs.size() == 1 ? inputs.front() : std::nullopt;
  if (layer.kind == "ReversibleEmbedding" && inputs.size() == 1) {
    // The same layer maps ids to vectors, and vectors back to scores of ids.
    if (!is_reversed) return embedded(*inputs.front(), layer.config);
    return with_last(*inputs.front(), extent(member(layer.config, "vocabulary")));
  }
  for (const auto& [kind, function] : kOneInput) {
    const bool is_kind = kind == layer.kind || kind == without_rank(layer.kind);
    if (is_kind && inputs.size() == 1) return function(*inputs.front(), layer.config);
  }
  // The projection of an attention of heads gives it the width of its query.
  if (is_attention_of_heads(layer.kind)) return inputs.front()->size() == 2 ? inputs.front() : std::nullopt;
  if (layer.kind == "Attention" || layer.kind == "AdditiveAttention") return attended(layer, inputs);
  if (is_recurrent(layer.kind)) return recurrent(*inputs.front(), layer.config);
  if (layer.kind == "Dot") return dotted(inputs, layer.config);
  if (layer.kind == "Concatenate") return concatenated(inputs, layer.config);
  if (layer.kind == "Operation") return after_operation(inputs, layer.config);
  return std::find(kMerging.begin(), kMerging.end(), layer.kind) == kMerging.end() ? std::nullopt
                                                                                   : broadcast_all(inputs);
}

std::size_t output_count(const ModelGraphLayer& layer) {
  const bool is_attention =
      is_attention_of_heads(layer.kind) || layer.kind == "Attention" || layer.kind == "AdditiveAttention";
  if (is_attention) return flag_member(layer.config, "return_attention_scores", false) ? 2 : 1;
  const bool has_states = is_recurrent(layer.kind) && flag_member(layer.config, "return_state", false);
  if (!has_states) return 1;
  const bool is_both_ways = layer.kind == "Bidirectional";
  const std::string kind = is_both_ways ? text_member(layer.config, "layer") : layer.kind;
  // The output, then the states of each direction: an LSTM has two.
  return 1 + (kind == "LSTM" ? 2U : 1U) * (is_both_ways ? 2U : 1U);
}

std::vector<MaybeShape> shapes_after(const ModelGraphLayer& layer, Shapes inputs, bool is_reversed) {
  std::vector<MaybeShape> shapes = {shape_after(layer, inputs, is_reversed)};
  const std::size_t count = output_count(layer);
  if (count > 1 && is_recurrent(layer.kind)) {
    const auto units = extent(member(layer.config, "units"));
    // States of each direction have the units of one, also where the outputs of both lie side by side.
    shapes.resize(count, units ? MaybeShape(SampleShape{*units}) : std::nullopt);
  } else if (count > 1) {
    // Without the first shape some input has none either.
    shapes.push_back(shapes.front() ? shares_of(layer, inputs) : std::nullopt);
  }
  return shapes;
}

}  // namespace holdfast::format
