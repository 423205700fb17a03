// A module of PyTorch computes one formula, so a layer whose options change the formula or the order of its steps is
// refused: its weights would give other numbers there without a word. Masks are left to the program that calls it.

#include "pytorch/pytorch_sequences.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "keras_files/keras_json.h"

namespace holdfast::format {
namespace {

// The place of a layer in a module of PyTorch that has several, one on top of the other (`num_layers`).
struct StackedPlace {
  std::string module;            // the name of the layer without its end
  std::string number;            // "1", of "weight_ih_l1"
  bool is_like_pytorch = false;  // the layer is named "rnn_l1", and not "rnn_1" or "rnn.1"
};

std::optional<StackedPlace> stacked_place(const std::string& layer) {
  // npos + 1 is 0, for a name of digits alone.
  const std::size_t digits = layer.find_last_not_of("0123456789") + 1;
  const std::string number = layer.substr(digits);
  if (number.empty() || (number.size() > 1 && number.front() == '0')) return std::nullopt;
  for (const std::string_view separator : {"_l", "_", ".", "/"}) {
    const std::string before = layer.substr(0, digits);
    if (!before.ends_with(separator) || before.size() == separator.size()) continue;
    return StackedPlace{.module = before.substr(0, before.size() - separator.size()),
                        .number = number,
                        .is_like_pytorch = separator == "_l"};
  }
  return std::nullopt;
}

// One recurrent layer, whose weights are there once for each direction.
class RecurrentMove {
 public:
  RecurrentMove(const GraphLayer& layer, std::string kind, LayerArrays& arrays, Exchange* exchange)
      : layer_(layer), kind_(std::move(kind)), arrays_(arrays), exchange_(exchange) {
    check_options();
  }

  // `part` is the place of the weights in the layer, `suffix` the end of their names in PyTorch. Returns the units.
  std::uint64_t run(const std::string& part, const std::string& suffix) {
    kernel(part + "kernel", "weight_ih", suffix);
    const std::uint64_t units = kernel(part + "recurrent_kernel", "weight_hh", suffix);
    // PyTorch's module is made with bias=False then, and has neither of its two.
    if (arrays_.find(layer_, part + "bias") == nullptr) return units;
    const std::string first = their_name("bias_ih", suffix);
    const std::string second = their_name("bias_hh", suffix);
    if (kind_ == "GRU") {
      bias_rows(part + "bias", first, second);
    } else {
      const NamedArray& bias = arrays_.get(layer_, part + "bias", 1);
      if (exchange_ != nullptr) exchange_->move_sum(bias, first, second);
    }
    return units;
  }

 private:
  void check_options() const {
    const std::string activation = text_member(layer_.config, "activation");
    const std::string of_gates = text_member(layer_.config, "recurrent_activation");
    // A module is built with `nonlinearity` for the second one.
    const bool is_known = activation.empty() || activation == "tanh" || (kind_ == "SimpleRNN" && activation == "relu");
    if (!is_known || (!of_gates.empty() && of_gates != "sigmoid")) {
      refuse_layer(layer_, "has an activation that PyTorch's recurrent modules do not have");
    }
    if (flag_member(layer_.config, "go_backwards", false)) {
      refuse_layer(layer_,
                   "goes backwards, which PyTorch's recurrent modules do only together with a forward direction");
    }
    if (!flag_member(layer_.config, "reset_after", true)) {
      refuse_layer(layer_, "has reset_after = false, and PyTorch has no such GRU");
    }
  }

  // "rnn.weight_ih_l0_reverse". Layers that are named "rnn_l0" and "rnn_l1" are one module. A state dict may have those
  // of other names with a number at their end as one module as well, or each layer as its own.
  std::string their_name(const std::string& entry, const std::string& suffix) const {
    const std::string alone = name_in_pytorch(layer_, entry + "_l0" + suffix);
    const std::optional<StackedPlace> place = stacked_place(layer_.name);
    // Without an exchange the walk only checks, and asks for no names.
    if (exchange_ == nullptr || !place) return alone;
    GraphLayer module = layer_;
    module.name = place->module;
    const std::string stacked = name_in_pytorch(module, fmt::format("{}_l{}{}", entry, place->number, suffix));
    return place->is_like_pytorch ? exchange_->known_name(stacked, alone) : exchange_->known_name(alone, stacked);
  }

  std::uint64_t kernel(const std::string& entry, const std::string& their_entry, const std::string& suffix) {
    const std::uint64_t gates = kind_ == "LSTM" ? 4 : kind_ == "GRU" ? 3 : 1;
    const NamedArray& array = arrays_.get(layer_, entry, 2);
    if (array.shape[1] % gates != 0) {
      refuse_array(array,
                   fmt::format("has shape {}, which cannot be split into {} gates", text_of_shape(array.shape), gates));
    }
    Order order = transposed(array.shape, {1, 0});
    // PyTorch has the gates of an LSTM in Keras's order, and those of a GRU in another one.
    order.swaps_gates = kind_ == "GRU";
    if (exchange_ != nullptr) exchange_->move(array, their_name(their_entry, suffix), order);
    return array.shape[1] / gates;
  }

  // PyTorch has both rows as arrays of their own, each with its three gates in another order.
  void bias_rows(const std::string& entry, const std::string& first, const std::string& second) {
    const NamedArray& bias = *arrays_.find(layer_, entry);
    if (bias.shape.size() != 2 || bias.shape[0] != 2 || bias.shape[1] % 3 != 0) {
      refuse_array(bias, fmt::format("has shape {}, but a GRU with reset_after has [2, 3 u], and PyTorch has no other "
                                     "kind of GRU",
                                     text_of_shape(bias.shape)));
    }
    Order row = unchanged({bias.shape[1]});
    row.swaps_gates = true;
    if (exchange_ != nullptr) exchange_->move_rows(bias, first, second, row);
  }

  const GraphLayer& layer_;
  const std::string kind_;
  LayerArrays& arrays_;
  Exchange* const exchange_;
};

// The projections of one attention, as matrices whose columns are all heads side by side.
class AttentionMove {
 public:
  AttentionMove(const GraphLayer& layer, LayerArrays& arrays, Exchange* exchange, PyTorchStyle style)
      : layer_(layer), arrays_(arrays), exchange_(exchange), is_gpt2_(style == PyTorchStyle::gpt2) {}

  std::uint64_t run() {
    const bool has_bias = arrays_.find(layer_, "query_dense/bias") != nullptr;
    keep_rotation();
    if (layer_.kind == "MultiHeadAttention") {
      move_module(has_bias);
    } else {
      move_linear_modules(has_bias);
    }
    return array("output", "kernel", 3).shape[2];
  }

 private:
  const NamedArray& array(const std::string& part, const char* weight, std::size_t axes) {
    return arrays_.get(layer_, part + "_dense/" + weight, axes);
  }

  // PyTorch's programs compute these numbers. LlamaAttention turns queries and keys, and MultiheadAttention does not.
  void keep_rotation() {
    for (const char* entry : {"rotary/cosine", "rotary/sine"}) {
      const NamedArray* const table = arrays_.find(layer_, entry);
      if (table == nullptr) continue;
      if (layer_.kind == "MultiHeadAttention") {
        refuse_layer(layer_, "turns queries and keys by their position, which PyTorch's MultiheadAttention does not");
      }
      if (exchange_ != nullptr) exchange_->keep(*table);
    }
  }

  // The kernel is [width, heads, dim].
  static std::uint64_t heads_width(const NamedArray& kernel) { return kernel.shape[1] * kernel.shape[2]; }

  // [width, heads, dim] is [heads dim, width] there.
  static Order order_to_heads(const NamedArray& kernel) {
    return transposed({kernel.shape[0], heads_width(kernel)}, {1, 0});
  }
  // [heads, dim, width] is [width, heads dim] there.
  static Order order_from_heads(const NamedArray& kernel) {
    return transposed({kernel.shape[0] * kernel.shape[1], kernel.shape[2]}, {1, 0});
  }
  // A vector of all heads.
  static Order order_of_bias(const NamedArray& bias) {
    return unchanged({bias.shape.size() == 2 ? bias.shape[0] * bias.shape[1] : bias.shape[0]});
  }

  void move(const NamedArray& ours, const char* theirs, const Order& order) {
    if (exchange_ != nullptr) exchange_->move(ours, name_in_pytorch(layer_, theirs), order);
  }

  void move_packed(const std::vector<const NamedArray*>& ours, const char* theirs, const std::vector<Order>& orders,
                   bool is_transposed = false) {
    for (const NamedArray* one : ours) {
      if (one->dtype == ours.front()->dtype) continue;
      refuse_array(*one, "is of another type than the projection of queries, and PyTorch has both in one array");
    }
    if (exchange_ != nullptr) exchange_->move_packed(ours, name_in_pytorch(layer_, theirs), orders, is_transposed);
  }

  // torch.nn.MultiheadAttention, whose heads share the width of the queries.
  void move_module(bool has_bias) {
    const std::vector<const NamedArray*> kernels = {&array("query", "kernel", 3), &array("key", "kernel", 3),
                                                    &array("value", "kernel", 3)};
    const NamedArray& output = array("output", "kernel", 3);
    const std::uint64_t width = kernels[0]->shape[0];
    std::vector<Order> orders;
    bool is_packed = true;
    for (const NamedArray* kernel : kernels) {
      if (heads_width(*kernel) != width) {
        refuse_layer(layer_, fmt::format("has {} heads of {}, and PyTorch's heads share the width {} of the queries",
                                         kernel->shape[1], kernel->shape[2], width));
      }
      // Keys or values of other widths have arrays of their own.
      is_packed = is_packed && kernel->shape[0] == width;
      orders.push_back(order_to_heads(*kernel));
    }
    if (output.shape[0] * output.shape[1] != width || output.shape[2] != width) {
      refuse_array(output,
                   fmt::format("has shape {}, and its heads have the width {}", text_of_shape(output.shape), width));
    }
    if (is_gpt2_) {
      if (!is_packed) refuse_layer(layer_, "has keys or values of another width, and GPT-2 attends to itself");
      // Kernels of transformers.Conv1D are those of Keras.
      move_packed(kernels, "c_attn.weight", orders, true);
    } else if (is_packed) {
      move_packed(kernels, "in_proj_weight", orders);
    } else {
      constexpr const char* kNames[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
      for (std::size_t part = 0; part < 3; ++part) move(*kernels[part], kNames[part], orders[part]);
    }
    if (is_gpt2_) {
      move(output, "c_proj.weight", unchanged({width, width}));
    } else {
      move(output, "out_proj.weight", order_from_heads(output));
    }
    if (!has_bias) {
      if (is_gpt2_) refuse_layer(layer_, "has no bias, and GPT-2 has one");
      return;
    }
    std::vector<const NamedArray*> biases;
    std::vector<Order> bias_orders;
    for (const char* part : {"query", "key", "value"}) {
      biases.push_back(&array(part, "bias", 2));
      bias_orders.push_back(order_of_bias(*biases.back()));
    }
    move_packed(biases, is_gpt2_ ? "c_attn.bias" : "in_proj_bias", bias_orders);
    const NamedArray& output_bias = array("output", "bias", 1);
    move(output_bias, is_gpt2_ ? "c_proj.bias" : "out_proj.bias", order_of_bias(output_bias));
  }

  // PyTorch itself has no module with fewer heads of keys. These are the names of Hugging Face's LlamaAttention.
  void move_linear_modules(bool has_bias) {
    constexpr std::pair<const char*, const char*> kModules[] = {
        {"query", "q_proj"}, {"key", "k_proj"}, {"value", "v_proj"}, {"output", "o_proj"}};
    for (const auto& [part, module] : kModules) {
      const bool is_output = std::string_view(part) == "output";
      const NamedArray& kernel = array(part, "kernel", 3);
      move(kernel, fmt::format("{}.weight", module).c_str(),
           is_output ? order_from_heads(kernel) : order_to_heads(kernel));
      if (!has_bias) continue;
      const NamedArray& bias = array(part, "bias", is_output ? 1 : 2);
      move(bias, fmt::format("{}.bias", module).c_str(), order_of_bias(bias));
    }
  }

  const GraphLayer& layer_;
  LayerArrays& arrays_;
  Exchange* const exchange_;
  const bool is_gpt2_;
};

}  // namespace

bool is_recurrent(std::string_view kind) {
  return kind == "SimpleRNN" || kind == "LSTM" || kind == "GRU" || kind == "Bidirectional";
}

std::uint64_t move_recurrent(const GraphLayer& layer, LayerArrays& arrays, Exchange* exchange) {
  if (layer.kind != "Bidirectional") {
    // Layers of Holdfast have their weights in a part "cell", as in Keras; other savepoints may have them in the layer.
    const bool has_cell = arrays.find(layer, "cell/kernel") != nullptr;
    return RecurrentMove(layer, layer.kind, arrays, exchange).run(has_cell ? "cell/" : "", "");
  }
  const std::string kind = text_member(layer.config, "layer");
  if (kind != "SimpleRNN" && kind != "LSTM" && kind != "GRU") {
    refuse_layer(layer, "does not say which layer goes in both directions");
  }
  RecurrentMove move(layer, kind, arrays, exchange);
  move.run("forward_layer/cell/", "");
  return move.run("backward_layer/cell/", "_reverse");
}

std::uint64_t move_attention(const GraphLayer& layer, LayerArrays& arrays, Exchange* exchange, PyTorchStyle style) {
  return AttentionMove(layer, arrays, exchange, style).run();
}

}  // namespace holdfast::format
