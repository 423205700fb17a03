// One walk over the savepoint's graph serves both directions: it says for each layer which arrays correspond and how
// their axes are ordered, and an Exchange moves the values. So the two directions cannot disagree. pytorch.h has the
// table of layers.

#include "holdfast/format/exchange/pytorch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "bytes/array_checks.h"
#include "bytes/array_prefixes.h"
#include "bytes/byte_source.h"
#include "bytes/transpose.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "pytorch/pytorch_graph.h"

namespace holdfast::format {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string text_of(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The order of one of our arrays' elements in PyTorch: viewed in shape `seen`, transposed, then viewed in shape
// `theirs`.
struct Order {
  Shape seen;
  std::vector<std::size_t> axes;
  Shape theirs;
  bool swaps_gates = false;  // swaps the first two of three blocks of rows
};

Order unchanged(const Shape& shape) {
  Order order{.seen = shape, .axes = {}, .theirs = shape};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) order.axes.push_back(axis);
  return order;
}

Order transposed(const Shape& shape, std::vector<std::size_t> axes) {
  Order order{.seen = shape, .axes = std::move(axes), .theirs = {}};
  for (const std::size_t axis : order.axes) order.theirs.push_back(shape[axis]);
  return order;
}

// Keras orders a GRU's gates as update, reset, new; PyTorch as reset, update, new.
void swap_first_two_of_three(std::vector<std::byte>& bytes) {
  const auto block = static_cast<std::ptrdiff_t>(bytes.size() / 3);
  std::swap_ranges(bytes.begin(), bytes.begin() + block, bytes.begin() + block);
}

// A view changes no bytes, so only the transposition and the gates move anything.
std::vector<std::byte> to_theirs(const std::vector<std::byte>& bytes, std::size_t element_bytes, const Order& order) {
  std::vector<std::byte> result = transpose(bytes, element_bytes, order.seen, order.axes);
  if (order.swaps_gates) swap_first_two_of_three(result);
  return result;
}

// The reverse of to_theirs: gates first, then the inverse permutation of axes.
std::vector<std::byte> to_ours(std::vector<std::byte> bytes, std::size_t element_bytes, const Order& order) {
  if (order.swaps_gates) swap_first_two_of_three(bytes);
  Shape shape;
  std::vector<std::size_t> axes(order.axes.size());
  for (std::size_t k = 0; k < order.axes.size(); ++k) {
    shape.push_back(order.seen[order.axes[k]]);
    axes[order.axes[k]] = k;
  }
  return transpose(bytes, element_bytes, shape, axes);
}

// The arrays of one savepoint, by layer and entry.
class Model {
 public:
  explicit Model(const ArraySet& savepoint) {
    for (const NamedArray& array : savepoint.arrays) {
      if (array.name.starts_with(kModelPrefix)) arrays_.emplace(array.name, &array);
    }
  }

  // Returns null if the layer has no such entry.
  const NamedArray* find(const GraphLayer& layer, const std::string& entry) {
    const auto found = arrays_.find(std::string(kModelPrefix) + layer.name + "/" + entry);
    if (found == arrays_.end()) return nullptr;
    // Looking an array up claims it: the walk looks up only what it also converts.
    claimed_.insert(found->first);
    return found->second;
  }

  // An array that no layer takes would be lost in silence.
  void require_all_claimed() const {
    for (const auto& [name, array] : arrays_) {
      if (!claimed_.contains(name)) {
        throw Error(
            ErrorCode::unsupported,
            fmt::format("array {} has no counterpart in PyTorch for a layer of the graph; remove it or the layer",
                        quoted_text(name)));
      }
    }
  }

 private:
  std::map<std::string, const NamedArray*> arrays_;
  std::set<std::string> claimed_;
};

// One of the two directions. `ours` is an array of the savepoint, or of the savepoint that the result must be like.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void move(const NamedArray& ours, const std::string& theirs, const Order& order) = 0;
  // Our single bias is the sum of PyTorch's two.
  virtual void move_sum(const NamedArray& ours, const std::string& first, const std::string& second) = 0;
  // The two rows of our array are two arrays in PyTorch.
  virtual void move_rows(const NamedArray& ours, const std::string& first, const std::string& second,
                         const Order& row) = 0;
  // The number of batches that the running averages saw. PyTorch needs it only for averages without momentum.
  virtual void count_batches(const std::string& theirs) = 0;
};

// Collects arrays under PyTorch's names.
class ToPyTorch : public Exchange {
 public:
  ArraySet take() {
    std::ranges::sort(set_.arrays, {}, &NamedArray::name);
    const auto twice = std::ranges::adjacent_find(set_.arrays, {}, &NamedArray::name);
    if (twice != set_.arrays.end()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("two arrays would both be named {} in PyTorch; rename one of their layers",
                              quoted_text(twice->name)));
    }
    return std::move(set_);
  }

  void move(const NamedArray& ours, const std::string& theirs, const Order& order) override {
    set_.arrays.push_back({theirs, ours.dtype, order.theirs, to_theirs(ours.bytes, size_bytes(ours.dtype), order)});
  }

  void move_sum(const NamedArray& ours, const std::string& first, const std::string& second) override {
    set_.arrays.push_back({first, ours.dtype, ours.shape, ours.bytes});
    // PyTorch adds both biases, so the second is zero.
    set_.arrays.push_back({second, ours.dtype, ours.shape, std::vector<std::byte>(ours.bytes.size())});
  }

  void move_rows(const NamedArray& ours, const std::string& first, const std::string& second,
                 const Order& row) override {
    const auto middle = ours.bytes.begin() + static_cast<std::ptrdiff_t>(ours.bytes.size() / 2);
    move({"", ours.dtype, row.seen, {ours.bytes.begin(), middle}}, first, row);
    move({"", ours.dtype, row.seen, {middle, ours.bytes.end()}}, second, row);
  }

  void count_batches(const std::string& theirs) override {
    set_.arrays.push_back({theirs, DType::i64, {}, std::vector<std::byte>(8)});
  }

 private:
  ArraySet set_{.arrays = {}, .metadata = R"({"format":"pt"})"};
};

// If the second is zero, the first keeps its bits, even the sign of a zero.
template <typename Float>
void add(std::vector<std::byte>& first, const std::vector<std::byte>& second) {
  for (std::size_t i = 0; i < first.size(); i += sizeof(Float)) {
    Float a = 0;
    Float b = 0;
    std::memcpy(&a, first.data() + i, sizeof a);
    std::memcpy(&b, second.data() + i, sizeof b);
    if (b == 0) continue;
    a += b;
    std::memcpy(first.data() + i, &a, sizeof a);
  }
}

// Takes arrays of a state dict by name, and knows which ones are left.
class FromPyTorch : public Exchange {
 public:
  explicit FromPyTorch(const ArraySet& state_dict) {
    // DataParallel and DistributedDataParallel put "module." in front of every name.
    const bool is_replicated = std::all_of(state_dict.arrays.begin(), state_dict.arrays.end(),
                                           [](const NamedArray& array) { return array.name.starts_with(kReplicated); });
    for (const NamedArray& array : state_dict.arrays) {
      theirs_.emplace(array.name.substr(is_replicated ? kReplicated.size() : 0), &array);
    }
  }

  void require_all_taken() const {
    if (theirs_.empty()) return;
    throw Error(
        ErrorCode::incompatible,
        fmt::format("the state dict has {}, for which the savepoint has no array; use a savepoint of the same model",
                    quoted_text(theirs_.begin()->first)));
  }

  // A savepoint's arrays are sorted by name, whatever the order of the layers.
  std::vector<NamedArray> take() {
    std::ranges::sort(arrays_, {}, &NamedArray::name);
    return std::move(arrays_);
  }

  void move(const NamedArray& ours, const std::string& theirs, const Order& order) override {
    add_array(ours, to_ours(fetch(theirs, ours, order.theirs), size_bytes(ours.dtype), order));
  }

  void move_sum(const NamedArray& ours, const std::string& first, const std::string& second) override {
    std::vector<std::byte> sum = fetch(first, ours, ours.shape);
    const std::vector<std::byte> addend = fetch(second, ours, ours.shape);
    if (ours.dtype == DType::f32) {
      add<float>(sum, addend);
    } else if (ours.dtype == DType::f64) {
      add<double>(sum, addend);
    } else if (std::any_of(addend.begin(), addend.end(), [](std::byte byte) { return byte != std::byte{0}; })) {
      // In f16 or bf16 the sum would be rounded. PyTorch's second bias is mostly zero, and zeros need no addition.
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} and {} can be added only as f32 or f64; convert the state dict to f32",
                              quoted_text(first), quoted_text(second)));
    }
    add_array(ours, std::move(sum));
  }

  void move_rows(const NamedArray& ours, const std::string& first, const std::string& second,
                 const Order& row) override {
    std::vector<std::byte> bytes = to_ours(fetch(first, ours, row.theirs), size_bytes(ours.dtype), row);
    const std::vector<std::byte> rest = to_ours(fetch(second, ours, row.theirs), size_bytes(ours.dtype), row);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    add_array(ours, std::move(bytes));
  }

  void count_batches(const std::string& theirs) override { theirs_.erase(theirs); }

 private:
  static constexpr std::string_view kReplicated = "module.";

  void add_array(const NamedArray& ours, std::vector<std::byte> bytes) {
    arrays_.push_back({ours.name, ours.dtype, ours.shape, std::move(bytes)});
  }

  const std::vector<std::byte>& fetch(const std::string& theirs, const NamedArray& ours, const Shape& shape) {
    const auto found = theirs_.find(theirs);
    if (found == theirs_.end()) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("the state dict lacks {} for array {}; give the modules the names of the layers",
                              quoted_text(theirs), quoted_text(ours.name)));
    }
    const NamedArray& array = *found->second;
    if (array.shape != shape || array.dtype != ours.dtype) {
      throw Error(ErrorCode::incompatible, fmt::format("{} of the state dict is {}{}, but array {} of the savepoint "
                                                       "needs {}{}; use a savepoint of the same model",
                                                       quoted_text(theirs), name(array.dtype), text_of(array.shape),
                                                       quoted_text(ours.name), name(ours.dtype), text_of(shape)));
    }
    // Arrays that no layer takes are an error at the end.
    theirs_.erase(found);
    return array.bytes;
  }

  std::map<std::string, const NamedArray*> theirs_;  // arrays that no layer has taken
  std::vector<NamedArray> arrays_;
};

// Visits the layers in order, and tracks how the data between them is ordered in PyTorch.
class LayerWalk {
 public:
  LayerWalk(const ArraySet& savepoint, Exchange& exchange)
      : graph_(parse_graph(savepoint.metadata)), model_(savepoint), exchange_(exchange) {}

  void run() {
    // Layers do not say how their input is ordered, so the walk keeps track of it.
    rank_ = graph_.input_shape.size();
    channels_ = rank_ == 0 ? 0 : graph_.input_shape.back();
    for (const GraphLayer& layer : graph_.layers) visit(layer);
    model_.require_all_claimed();
  }

 private:
  static constexpr std::size_t kImageRank = 3;  // height, width, channel

  void visit(const GraphLayer& layer) {
    if (layer.kind == "Dense") return dense(layer);
    if (layer.kind == "Conv2D") return conv2d(layer);
    if (layer.kind == "DepthwiseConv2D") return depthwise_conv2d(layer);
    if (layer.kind == "BatchNormalization") return batch_normalization(layer);
    if (layer.kind == "LayerNormalization") return layer_normalization(layer);
    if (layer.kind == "Embedding") return embedding(layer);
    if (layer.kind == "LSTM") return lstm(layer);
    if (layer.kind == "GRU") return gru(layer);
    if (layer.kind == "Flatten") return flatten();
    // These change neither names nor order. Any other kind might, so it is refused.
    static const std::set<std::string> kWithoutWeights = {"Activation", "AveragePooling2D", "Dropout", "MaxPooling2D"};
    if (kWithoutWeights.contains(layer.kind)) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("layer {} is of kind {}, which cannot be converted to PyTorch; leave it out of the model",
                            quoted_text(layer.name), quoted_text(layer.kind)));
  }

  // PyTorch flattens an image with its channels first.
  void flatten() {
    // With one channel both orders are the same.
    if (rank_ == kImageRank && channels_ > 1) flattened_channels_ = channels_;
    rank_ = 1;
  }

  void dense(const GraphLayer& layer) {
    const NamedArray& kernel = get(layer, "kernel", 2);
    exchange_.move(kernel, theirs(layer, "weight"), order_of_dense(kernel));
    // The bias belongs to the outputs, whose order is the same in both.
    flattened_channels_ = 0;
    channels_ = kernel.shape[1];
    move_feature(layer, "bias", "bias");
  }

  // The kernel's rows follow the flattened image: positions, then channels. PyTorch has channels, then positions.
  Order order_of_dense(const NamedArray& kernel) const {
    Order order = transposed(kernel.shape, {1, 0});
    if (flattened_channels_ == 0) return order;
    order.seen = {positions(kernel, kernel.shape[0]), flattened_channels_, kernel.shape[1]};
    order.axes = {2, 1, 0};
    return order;
  }

  // The number of positions in the flattened image.
  std::uint64_t positions(const NamedArray& array, std::uint64_t inputs) const {
    if (inputs % flattened_channels_ != 0) {
      refuse(array, fmt::format("has {} inputs, which are not a multiple of the {} channels of the flattened image",
                                inputs, flattened_channels_));
    }
    return inputs / flattened_channels_;
  }

  void conv2d(const GraphLayer& layer) {
    const NamedArray& kernel = get(layer, "kernel", 4);
    exchange_.move(kernel, theirs(layer, "weight"), transposed(kernel.shape, {3, 2, 0, 1}));
    move_feature(layer, "bias", "bias");
    rank_ = kImageRank;
    channels_ = kernel.shape[3];
  }

  void depthwise_conv2d(const GraphLayer& layer) {
    // Keras 2 named the kernel of this layer depthwise_kernel.
    const bool has_long_name = model_.find(layer, "depthwise_kernel") != nullptr;
    const NamedArray& kernel = get(layer, has_long_name ? "depthwise_kernel" : "kernel", 4);
    Order order = transposed(kernel.shape, {2, 3, 0, 1});
    channels_ = order.theirs[0] * order.theirs[1];
    // PyTorch sees the multiplier as more output channels of a grouped convolution.
    order.theirs = {channels_, 1, order.theirs[2], order.theirs[3]};
    exchange_.move(kernel, theirs(layer, "weight"), order);
    move_feature(layer, "bias", "bias");
    rank_ = kImageRank;
  }

  void batch_normalization(const GraphLayer& layer) {
    layer_normalization(layer);
    move_feature(layer, "moving_mean", "running_mean");
    move_feature(layer, "moving_variance", "running_var");
    exchange_.count_batches(theirs(layer, "num_batches_tracked"));
  }

  void layer_normalization(const GraphLayer& layer) {
    move_feature(layer, "gamma", "weight");
    move_feature(layer, "beta", "bias");
  }

  // An array with one number for each input, if the layer has it.
  void move_feature(const GraphLayer& layer, const std::string& ours, const std::string& their_entry) {
    if (model_.find(layer, ours) == nullptr) return;
    const NamedArray& array = get(layer, ours, 1);
    Order order = unchanged(array.shape);
    if (flattened_channels_ != 0) {
      order.seen = {positions(array, array.shape[0]), flattened_channels_};
      order.axes = {1, 0};
    }
    exchange_.move(array, theirs(layer, their_entry), order);
  }

  void embedding(const GraphLayer& layer) {
    const NamedArray& array = get(layer, "embeddings", 2);
    exchange_.move(array, theirs(layer, "weight"), unchanged(array.shape));
    ++rank_;
    channels_ = array.shape[1];
  }

  void lstm(const GraphLayer& layer) {
    recurrent_kernels(layer, 4);
    if (model_.find(layer, "bias") == nullptr) return;
    exchange_.move_sum(get(layer, "bias", 1), theirs(layer, "bias_ih_l0"), theirs(layer, "bias_hh_l0"));
  }

  void gru(const GraphLayer& layer) {
    recurrent_kernels(layer, 3);
    // Without a bias the layer has no rows to move.
    const NamedArray* bias = model_.find(layer, "bias");
    if (bias == nullptr) return;
    if (bias->shape.size() != 2 || bias->shape[0] != 2 || bias->shape[1] % 3 != 0) {
      refuse(*bias,
             fmt::format("has shape {}, but a GRU with reset_after has [2, 3 u], and PyTorch has no other kind of GRU",
                         text_of(bias->shape)));
    }
    Order row = unchanged({bias->shape[1]});
    row.swaps_gates = true;
    exchange_.move_rows(*bias, theirs(layer, "bias_ih_l0"), theirs(layer, "bias_hh_l0"), row);
  }

  void recurrent_kernels(const GraphLayer& layer, std::uint64_t gates) {
    for (const auto& [entry, their_entry] :
         {std::pair{"kernel", "weight_ih_l0"}, {"recurrent_kernel", "weight_hh_l0"}}) {
      const NamedArray& kernel = get(layer, entry, 2);
      if (kernel.shape[1] % gates != 0) {
        refuse(kernel, fmt::format("has shape {}, which cannot be split into {} gates", text_of(kernel.shape), gates));
      }
      Order order = transposed(kernel.shape, {1, 0});
      // Only a GRU orders its gates differently.
      order.swaps_gates = gates == 3;
      exchange_.move(kernel, theirs(layer, their_entry), order);
      channels_ = kernel.shape[1] / gates;
    }
  }

  const NamedArray& get(const GraphLayer& layer, const std::string& entry, std::size_t axes) {
    const NamedArray* array = model_.find(layer, entry);
    if (array == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the savepoint has no array {} for its {} layer {}; give a complete savepoint",
                              quoted_text(entry), quoted_text(layer.kind), quoted_text(layer.name)));
    }
    if (array->shape.size() != axes) {
      refuse(*array, fmt::format("has shape {}, but a {} needs {} axes", text_of(array->shape), layer.kind, axes));
    }
    return *array;
  }

  [[noreturn]] static void refuse(const NamedArray& array, const std::string& problem) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("array {} of the savepoint {}; give a savepoint that fits its graph",
                            quoted_text(array.name), problem));
  }

  // PyTorch separates names by dots.
  static std::string theirs(const GraphLayer& layer, const std::string& entry) {
    std::string module = layer.name;
    std::replace(module.begin(), module.end(), '/', '.');
    return module + "." + entry;
  }

  const Graph graph_;
  Model model_;
  Exchange& exchange_;
  std::size_t rank_ = 0;                  // axes of one sample between the layers
  std::uint64_t channels_ = 0;            // extent of its last axis
  std::uint64_t flattened_channels_ = 0;  // of the flattened image that is the input; 0 for other inputs
};

}  // namespace

ArraySet to_pytorch(const ArraySet& savepoint) {
  check_arrays("a PyTorch state dict", views(savepoint.arrays));
  ToPyTorch exchange;
  LayerWalk(savepoint, exchange).run();
  return exchange.take();
}

ArraySet from_pytorch(const ArraySet& state_dict, const ArraySet& like) {
  check_arrays("a savepoint from a PyTorch state dict", views(state_dict.arrays));
  check_arrays("a savepoint like this one", views(like.arrays));
  FromPyTorch exchange(state_dict);
  LayerWalk(like, exchange).run();
  exchange.require_all_taken();
  return {.arrays = exchange.take(), .metadata = like.metadata};
}

}  // namespace holdfast::format
