// One walk serves both directions, so that these cannot disagree. Layers do not say how PyTorch orders the values
// between them: images have their channels first there, and so have flattened images. The walk keeps track of it.

#include "pytorch/pytorch_walk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "keras_files/keras_json.h"
#include "keras_layers/keras_activation.h"
#include "keras_layers/model_graph_shapes.h"
#include "pytorch/pytorch_graph.h"
#include "pytorch/pytorch_layers.h"
#include "pytorch/pytorch_sequences.h"
#include "pytorch/torch_module.h"

namespace holdfast::format {
namespace {

using Shape = std::vector<std::uint64_t>;

// How PyTorch orders a value that a call takes or gives.
struct ValueOrder {
  std::size_t rank = 0;             // axes of one sample
  std::uint64_t channels = 0;       // extent of its last axis; 0 if the walk does not know it
  bool has_channels_first = false;  // in PyTorch, as images have
  bool has_steps_first = false;     // in PyTorch: its modules of sequences give and take [steps, width]
  std::uint64_t flattened = 0;      // channels of the flattened image that it is; 0 for other values
};

bool is_among_kinds(std::initializer_list<std::string_view> kinds, std::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Visits the calls of layers in order, and tracks how the values between them are ordered in PyTorch.
class LayerWalk {
 public:
  LayerWalk(const ArraySet& savepoint, Exchange& exchange, PyTorchStyle style)
      : graph_(parse_graph(savepoint.metadata)),
        are_reversed_(reversed_calls(graph_)),
        arrays_(savepoint),
        exchange_(exchange),
        style_(style) {}

  void run() {
    std::vector<ValueOrder> inputs;
    for (const ModelGraphInput& input : graph_.inputs) inputs.push_back(order_of_input(input.shape));
    // Layers do not say how their input is ordered, so the walk keeps track of it.
    std::vector<ValueOrder> outputs;
    for (const ModelGraphCall& call : graph_.calls) {
      const GraphLayer& layer = graph_.layers[call.layer];
      std::vector<ValueOrder> values;
      for (const ModelGraphSource& source : call.inputs) {
        const bool is_input = source.call == ModelGraphSource::kModelInput;
        values.push_back(is_input ? inputs[source.index] : order_of_output(source, outputs));
      }
      if (values.empty()) refuse_layer(layer, "is called on nothing");
      value_ = joined(layer, values);
      is_reversed_ = are_reversed_[outputs.size()];
      visit_call(layer, call.layer);
      outputs.push_back(value_);
    }
    arrays_.require_all_claimed();
  }

 private:
  static constexpr std::size_t kImageRank = 3;  // height, width, channel

  static ValueOrder order_of_input(const SampleShape& shape) {
    return {.rank = shape.size(),
            // A single number goes with any channel, as one channel does.
            .channels = shape.empty() ? 1 : static_cast<std::uint64_t>(shape.back()),
            .has_channels_first = shape.size() >= kImageRank};
  }

  // A layer's first output is what its call gave. Others are states of recurrent layers, and shares of attentions.
  ValueOrder order_of_output(const ModelGraphSource& source, const std::vector<ValueOrder>& outputs) const {
    if (source.index == 0) return outputs[source.call];
    const std::string& kind = graph_.layers[graph_.calls[source.call].layer].kind;
    return {.rank = is_recurrent(kind) ? 1U : 3U, .has_steps_first = true};
  }

  // The order of what a layer of several values gives, before its axes change.
  static ValueOrder joined(const GraphLayer& layer, const std::vector<ValueOrder>& values) {
    ValueOrder result = values.front();
    const bool concatenates = layer.kind == "Concatenate" || text_of_operation(layer) == "concatenate";
    const bool adds_channels = concatenates && is_last_axis(layer, result.rank);
    for (std::size_t i = 1; i < values.size(); ++i) {
      // Elements of two orders meet here, and PyTorch would add others than we do.
      if (values[i].flattened != result.flattened) {
        refuse_layer(layer, "takes a flattened image and another value, whose elements PyTorch orders otherwise");
      }
      const bool is_known = result.channels != 0 && values[i].channels != 0;
      // Values are repeated along an axis of extent 1, so the largest extent is that of the result.
      const std::uint64_t channels =
          adds_channels ? result.channels + values[i].channels : std::max(result.channels, values[i].channels);
      result.channels = is_known ? channels : 0;
      result.rank = std::max(result.rank, values[i].rank);
      result.has_channels_first = result.has_channels_first || values[i].has_channels_first;
      result.has_steps_first = result.has_steps_first || values[i].has_steps_first;
    }
    // What meets a sequence must have its order.
    if (result.has_steps_first) result.has_channels_first = false;
    // Images one after another are not an image of all channels.
    if (concatenates && values.size() > 1 && result.flattened != 0) {
      refuse_layer(layer, "joins flattened images, whose elements PyTorch orders otherwise");
    }
    return result;
  }

  static bool is_last_axis(const GraphLayer& layer, std::size_t rank) {
    const std::int64_t axis = integer_value(member(layer.config, "axis")).value_or(-1);
    return axis == -1 || axis == static_cast<std::int64_t>(rank) - 1;
  }

  static std::string text_of_operation(const GraphLayer& layer) {
    return layer.kind == "Operation" ? text_member(layer.config, "operation") : "";
  }

  void visit_call(const GraphLayer& layer, std::size_t place) {
    // Only the first call of a layer moves its arrays. Later ones are visited for the order of their values.
    const auto [first, is_first] = orders_.emplace(place, value_.flattened);
    // A shared layer has one set of weights, so its inputs need one order.
    if (!is_first && first->second != value_.flattened) {
      refuse_layer(layer, "is called on a flattened image and on another value, and has weights for one of them");
    }
    moves_ = is_first;
    visit(layer);
  }

  void visit(const GraphLayer& layer) {
    const std::string& kind = layer.kind;
    if (kind == "Dense") return dense(layer);
    if (is_among_kinds({"Conv1D", "Conv2D", "Conv3D"}, kind)) return convolution(layer);
    if (is_among_kinds({"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"}, kind))
      return transposed_convolution(layer);
    if (is_among_kinds({"DepthwiseConv1D", "DepthwiseConv2D"}, kind)) return depthwise_convolution(layer);
    if (kind == "BatchNormalization") return batch_normalization(layer);
    if (is_among_kinds({"LayerNormalization", "GroupNormalization"}, kind)) return layer_normalization(layer);
    if (kind == "RMSNormalization") return move_feature(layer, "scale", "weight");
    if (kind == "PReLU") return prelu(layer);
    if (kind == "Embedding" || kind == "ReversibleEmbedding") return embedding(layer);
    if (kind == "PositionEmbedding") return position_embedding(layer);
    if (kind == "SinePositionEncoding") return keep(layer, {"encoding"});
    if (kind == "RotaryEmbedding") return keep(layer, {"cosine", "sine"});
    if (is_recurrent(kind)) return recurrent(layer);
    if (is_among_kinds({"MultiHeadAttention", "GroupQueryAttention"}, kind)) return attention(layer);
    // Functions of values, whose trained factors have no module.
    if (is_among_kinds({"Attention", "AdditiveAttention"}, kind)) {
      value_ = {.rank = 2, .has_steps_first = true};
      return;
    }
    if (kind == "Flatten") return flatten(layer);
    // The result is a vector of channels, which both sides order alike.
    if (kind == "GlobalAveragePooling" || kind == "GlobalMaxPooling") {
      if (!flag_member(layer.config, "keepdims", false)) value_ = {.rank = 1, .channels = value_.channels};
      return;
    }
    if (kind == "Reshape" || kind == "Permute" || kind == "RepeatVector") {
      reshape(layer);
      value_.channels = channels_after_reshape(layer);
      if (layer.kind == "Reshape") value_.rank = member(layer.config, "target_shape").size();
      if (layer.kind == "RepeatVector") value_.rank = 2;
      return;
    }
    if (kind == "Operation") return operation(layer);
    visit_without_weights(layer);
  }

  void visit_without_weights(const GraphLayer& layer) {
    const std::string& kind = layer.kind;
    // These change neither names nor order. Any other kind might, so it is refused.
    if (is_among_kinds({"Activation", "Add", "AlphaDropout", "Average", "Concatenate", "Dropout", "ELU",
                        "GaussianDropout", "GaussianNoise", "LeakyReLU", "Maximum", "Minimum", "Multiply", "ReLU",
                        "Rescaling", "Softmax", "Subtract"},
                       kind)) {
      return;
    }
    for (const std::string_view family :
         {"AveragePooling", "MaxPooling", "ZeroPadding", "Cropping", "UpSampling", "SpatialDropout"}) {
      if (!kind.starts_with(family)) continue;
      // Layers of positions have the channels first in PyTorch.
      value_.has_channels_first = true;
      value_.has_steps_first = false;
      return;
    }
    refuse_layer(layer, "cannot be converted to PyTorch");
  }

  // Functions between layers have no arrays. Those of elements keep the order, too.
  void operation(const GraphLayer& layer) {
    const std::string name = text_of_operation(layer);
    // An operation with a list of constants is one of elements, whatever its name.
    const bool keeps_order = layer.config.contains("constants") || name == "concatenate" || name == "cast" ||
                             name == "stop_gradient" || activation_of_keras(name).has_value();
    if (keeps_order) return;
    reshape(layer);
    // Whatever its extents are, no later layer may take it for an image.
    value_.channels = 0;
  }

  void reshape(const GraphLayer& layer) {
    if (value_.has_channels_first || value_.flattened != 0) {
      refuse_layer(layer, "moves the elements of an image, which PyTorch orders otherwise");
    }
  }

  std::uint64_t channels_after_reshape(const GraphLayer& layer) const {
    if (layer.kind == "RepeatVector") return value_.channels;
    const Json& shape = member(layer.config, "target_shape");
    const std::int64_t last = shape.is_array() && !shape.empty() ? integer_value(shape.back()).value_or(0) : 0;
    // An extent of -1 follows from the others, and a permuted one from values that the walk does not know.
    return last > 0 ? static_cast<std::uint64_t>(last) : 0;
  }

  // PyTorch flattens an image with its channels first.
  void flatten(const GraphLayer& layer) {
    if (value_.has_channels_first && value_.channels == 0) {
      refuse_layer(layer, "flattens an image whose number of channels does not follow from the layers before it");
    }
    // With one channel both orders are the same.
    if (value_.has_channels_first && value_.channels > 1) value_.flattened = value_.channels;
    value_.rank = 1;
    value_.has_channels_first = false;
    value_.has_steps_first = false;
  }

  // The arrays of a layer are moved with its first call.
  void move(const NamedArray& ours, const std::string& theirs, const Order& order) {
    if (moves_) exchange_.move(ours, theirs, order);
  }

  void dense(const GraphLayer& layer) {
    const NamedArray& kernel = get(layer, "kernel", 2);
    move(kernel, name_in_pytorch(layer, "weight"), order_of_dense(layer, kernel));
    // The bias belongs to the outputs, whose order is the same in both.
    value_.flattened = 0;
    value_.channels = kernel.shape[1];
    move_feature(layer, "bias", "bias");
  }

  // The kernel's rows follow the flattened image: positions, then channels. PyTorch has channels, then positions.
  Order order_of_dense(const GraphLayer& layer, const NamedArray& kernel) const {
    if (is_gpt2_kernel(layer)) {
      if (value_.flattened != 0) refuse_layer(layer, "follows a flattened image, which GPT-2 does not have");
      return unchanged(kernel.shape);
    }
    Order order = transposed(kernel.shape, {1, 0});
    if (value_.flattened == 0) return order;
    order.seen = {positions(kernel, kernel.shape[0]), value_.flattened, kernel.shape[1]};
    order.axes = {2, 1, 0};
    return order;
  }

  // GPT-2 has transformers.Conv1D, but for its heads.
  bool is_gpt2_kernel(const GraphLayer& layer) const {
    return style_ == PyTorchStyle::gpt2 && layer.name != "lm_head" && layer.name != "score";
  }

  // The number of positions in the flattened image.
  std::uint64_t positions(const NamedArray& array, std::uint64_t inputs) const {
    if (inputs % value_.flattened != 0) {
      refuse_array(array,
                   fmt::format("has {} inputs, which are not a multiple of the {} channels of the flattened image",
                               inputs, value_.flattened));
    }
    return inputs / value_.flattened;
  }

  // The axes of positions, of which the kind's name has the number.
  static std::size_t positions_of(const GraphLayer& layer) {
    const std::size_t digit = layer.kind.find_first_of("123");
    return static_cast<std::size_t>(layer.kind[digit] - '0');
  }

  // [positions..., a, b] becomes [b, a, positions...].
  static Order channels_first(const Shape& shape) {
    std::vector<std::size_t> axes = {shape.size() - 1, shape.size() - 2};
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) axes.push_back(axis);
    return transposed(shape, std::move(axes));
  }

  void convolution(const GraphLayer& layer) {
    const std::size_t positions = positions_of(layer);
    const NamedArray& kernel = get(layer, "kernel", positions + 2);
    move(kernel, name_in_pytorch(layer, "weight"), channels_first(kernel.shape));
    move_feature(layer, "bias", "bias");
    value_ = {.rank = positions + 1, .channels = kernel.shape.back(), .has_channels_first = true};
  }

  // Its kernel is that of the convolution that it reverses, in PyTorch too: [positions..., filters, channels].
  void transposed_convolution(const GraphLayer& layer) {
    const std::size_t positions = positions_of(layer);
    const NamedArray& kernel = get(layer, "kernel", positions + 2);
    move(kernel, name_in_pytorch(layer, "weight"), channels_first(kernel.shape));
    move_feature(layer, "bias", "bias");
    value_ = {.rank = positions + 1, .channels = kernel.shape[positions], .has_channels_first = true};
  }

  void depthwise_convolution(const GraphLayer& layer) {
    const std::size_t positions = positions_of(layer);
    // Keras 2 named the kernel of this layer depthwise_kernel.
    const bool has_long_name = arrays_.find(layer, "depthwise_kernel") != nullptr;
    const NamedArray& kernel = get(layer, has_long_name ? "depthwise_kernel" : "kernel", positions + 2);
    std::vector<std::size_t> axes = {positions, positions + 1};
    for (std::size_t axis = 0; axis < positions; ++axis) axes.push_back(axis);
    Order order = transposed(kernel.shape, std::move(axes));
    const std::uint64_t outputs = order.theirs[0] * order.theirs[1];
    // PyTorch sees the multiplier as more output channels of a grouped convolution.
    order.theirs[0] = outputs;
    order.theirs[1] = 1;
    move(kernel, name_in_pytorch(layer, "weight"), order);
    move_feature(layer, "bias", "bias");
    value_ = {.rank = positions + 1, .channels = outputs, .has_channels_first = true};
  }

  // PyTorch has a slope for each channel, or one for all.
  void prelu(const GraphLayer& layer) {
    const NamedArray* alpha = arrays_.find(layer, "alpha");
    if (alpha == nullptr) refuse_layer(layer, "lacks its array alpha");
    const Shape& shape = alpha->shape;
    const bool has_channels_alone =
        !shape.empty() && std::all_of(shape.begin(), shape.end() - 1, [](std::uint64_t extent) { return extent == 1; });
    if (!has_channels_alone) {
      refuse_layer(layer, "has slopes for positions, and PyTorch's PReLU has them for channels alone");
    }
    Order order = unchanged(shape);
    order.theirs = {shape.back()};
    if (value_.flattened != 0 && shape.size() == 1 && shape.front() > 1) order = order_of_feature(*alpha);
    move(*alpha, name_in_pytorch(layer, "weight"), order);
  }

  void batch_normalization(const GraphLayer& layer) {
    layer_normalization(layer);
    const bool has_gamma = flag_member(layer.config, "scale", true);
    const bool has_beta = flag_member(layer.config, "center", true);
    // PyTorch's module has both arrays or neither (`affine`).
    if (moves_ && !has_gamma && has_beta) {
      exchange_.move_constant(Constant::ones, get(layer, "beta", 1), name_in_pytorch(layer, "weight"));
    }
    if (moves_ && !has_beta && has_gamma) {
      exchange_.move_constant(Constant::zeros, get(layer, "gamma", 1), name_in_pytorch(layer, "bias"));
    }
    move_feature(layer, "moving_mean", "running_mean");
    move_feature(layer, "moving_variance", "running_var");
    if (moves_) exchange_.count_batches(name_in_pytorch(layer, "num_batches_tracked"));
  }

  void layer_normalization(const GraphLayer& layer) {
    const bool has_groups = layer.kind == "GroupNormalization" && member(layer.config, "groups") != 1;
    if (has_groups && value_.flattened != 0) {
      refuse_layer(layer, "has groups of a flattened image, whose elements PyTorch orders otherwise");
    }
    move_feature(layer, "gamma", "weight");
    move_feature(layer, "beta", "bias");
  }

  // An array with one number for each input, if the layer has it.
  void move_feature(const GraphLayer& layer, const std::string& ours, const std::string& their_entry) {
    if (arrays_.find(layer, ours) == nullptr) return;
    const NamedArray& array = get(layer, ours, 1);
    move(array, name_in_pytorch(layer, their_entry), order_of_feature(array));
  }

  // One number for each element of a flattened image, in the same order as the rows of a Dense after it.
  Order order_of_feature(const NamedArray& array) const {
    Order order = unchanged(array.shape);
    if (value_.flattened == 0) return order;
    order.seen = {positions(array, array.shape[0]), value_.flattened};
    order.axes = {1, 0};
    return order;
  }

  void embedding(const GraphLayer& layer) {
    const NamedArray& array = get(layer, "embeddings", 2);
    move(array, name_in_pytorch(layer, "weight"), unchanged(array.shape));
    if (!is_reversed_) ++value_.rank;
    value_.channels = array.shape[is_reversed_ ? 0 : 1];
  }

  // Their modules take and give values [steps, width], with `batch_first`.
  void recurrent(const GraphLayer& layer) {
    std::uint64_t width = move_recurrent(layer, arrays_, moves_ ? &exchange_ : nullptr);
    // Both directions side by side.
    if (layer.kind == "Bidirectional" && text_member(layer.config, "merge_mode") == "concat") width *= 2;
    value_ = {.rank = flag_member(layer.config, "return_sequences", false) ? 2U : 1U,
              .channels = width,
              .has_steps_first = true};
  }

  void attention(const GraphLayer& layer) {
    value_ = {.rank = 2,
              .channels = move_attention(layer, arrays_, moves_ ? &exchange_ : nullptr, style_),
              .has_steps_first = true};
  }

  void position_embedding(const GraphLayer& layer) {
    const NamedArray& array = get(layer, "embeddings", 2);
    move(array, name_in_pytorch(layer, "weight"), unchanged(array.shape));
  }

  // Numbers that follow from the layer's options. PyTorch's programs compute them, so their files have none.
  void keep(const GraphLayer& layer, std::initializer_list<const char*> entries) {
    for (const char* entry : entries) {
      const NamedArray& array = get(layer, entry, 2);
      if (moves_) exchange_.keep(array);
    }
  }

  const NamedArray& get(const GraphLayer& layer, const std::string& entry, std::size_t axes) {
    return arrays_.get(layer, entry, axes);
  }

  const Graph graph_;
  const std::vector<bool> are_reversed_;  // by call
  LayerArrays arrays_;
  Exchange& exchange_;
  const PyTorchStyle style_;
  ValueOrder value_;                             // of the call that is visited
  std::map<std::size_t, std::uint64_t> orders_;  // by layer: the flattened channels of its first call
  bool is_reversed_ = false;                     // whether the call that is visited leads from vectors to ids
  bool moves_ = true;
};

}  // namespace

std::string text_of_shape(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void walk_layers(const ArraySet& savepoint, Exchange& exchange, PyTorchStyle style) {
  if (describes_torch_module(savepoint.metadata)) return walk_torch_module(savepoint, exchange);
  LayerWalk(savepoint, exchange, style).run();
}

}  // namespace holdfast::format
