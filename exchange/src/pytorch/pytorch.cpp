// The walk of pytorch_walk.h says for each layer which arrays correspond. An Exchange moves their values in one of the
// two directions. pytorch.h has the table of layers.

#include "holdfast/format/exchange/pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "bytes/array_checks.h"
#include "bytes/byte_source.h"
#include "bytes/transpose.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "pytorch/pytorch_walk.h"

namespace holdfast::format {
namespace {

using Shape = std::vector<std::uint64_t>;

// Those of a transposed matrix.
constexpr std::array<std::size_t, 2> kMatrixAxes = {1, 0};

// Keras orders a GRU's gates as update, reset, new; PyTorch as reset, update, new.
void swap_first_two_of_three(std::vector<std::byte>& bytes) {
  const auto block = static_cast<std::ptrdiff_t>(bytes.size() / 3);
  std::swap_ranges(bytes.begin(), bytes.begin() + block, bytes.begin() + block);
}

// A view changes no bytes, so only the transposition and the gates move anything.
std::vector<std::byte> to_theirs(const std::vector<std::byte>& bytes, std::size_t element_bytes, const Order& order) {
  std::vector<std::byte> result = transpose(bytes, element_bytes, order.seen, order.axes);
  // After the transposition, because gates are blocks of rows in PyTorch and of columns here.
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

// Parts follow one another along the first axis, and agree in all others.
Shape packed_shape(const std::vector<Order>& orders) {
  Shape shape = orders.front().theirs;
  for (std::size_t part = 1; part < orders.size(); ++part) shape[0] += orders[part].theirs[0];
  return shape;
}

// `one` has the bits of a 1 in the type. For an integer that is the number itself.
std::vector<std::byte> constant_bytes(Constant constant, const NamedArray& like) {
  std::vector<std::byte> bytes(like.bytes.size());
  if (constant == Constant::zeros) return bytes;
  std::uint64_t one = 1;
  if (like.dtype == DType::f64) one = 0x3FF0000000000000;
  if (like.dtype == DType::f32) one = 0x3F800000;
  if (like.dtype == DType::f16) one = 0x3C00;
  if (like.dtype == DType::bf16) one = 0x3F80;
  const std::size_t step = size_bytes(like.dtype);
  // Little-endian, as all files here are.
  for (std::size_t i = 0; i < bytes.size(); i += step) std::memcpy(bytes.data() + i, &one, step);
  return bytes;
}

// Collects arrays under PyTorch's names.
class ToPyTorch : public Exchange {
 public:
  ArraySet take() {
    std::ranges::sort(set_.arrays, {}, &NamedArray::name);
    // Dots and slashes become one sign, so two layers of other names may meet.
    const auto twice = std::ranges::adjacent_find(set_.arrays, {}, &NamedArray::name);
    if (twice != set_.arrays.end()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("two arrays would both be named {} in PyTorch; rename one of their layers",
                              quoted_text(twice->name)));
    }
    return std::move(set_);
  }

  std::string known_name(const std::string& usual, const std::string&) const override { return usual; }

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
    // Two rows of equal length, one after another.
    const auto middle = ours.bytes.begin() + static_cast<std::ptrdiff_t>(ours.bytes.size() / 2);
    move({"", ours.dtype, row.seen, {ours.bytes.begin(), middle}}, first, row);
    move({"", ours.dtype, row.seen, {middle, ours.bytes.end()}}, second, row);
  }

  void move_packed(const std::vector<const NamedArray*>& ours, const std::string& theirs,
                   const std::vector<Order>& orders, bool is_transposed) override {
    std::vector<std::byte> bytes;
    for (std::size_t part = 0; part < ours.size(); ++part) {
      const std::vector<std::byte> rows = to_theirs(ours[part]->bytes, size_bytes(ours[part]->dtype), orders[part]);
      bytes.insert(bytes.end(), rows.begin(), rows.end());
    }
    Shape shape = packed_shape(orders);
    if (is_transposed) {
      bytes = transpose(bytes, size_bytes(ours.front()->dtype), shape, kMatrixAxes);
      std::swap(shape[0], shape[1]);
    }
    set_.arrays.push_back({theirs, ours.front()->dtype, std::move(shape), std::move(bytes)});
  }

  // PyTorch computes these arrays itself, so they stay out of the state dict.
  void keep(const NamedArray& /*ours*/) override {}

  void move_constant(Constant constant, const NamedArray& like, const std::string& theirs) override {
    set_.arrays.push_back({theirs, like.dtype, like.shape, constant_bytes(constant, like)});
  }

  void count_batches(const std::string& theirs, std::int64_t batches) override {
    std::vector<std::byte> bytes(sizeof batches);
    std::memcpy(bytes.data(), &batches, sizeof batches);
    set_.arrays.push_back({theirs, DType::i64, {}, std::move(bytes)});
  }

  void copy(const NamedArray& ours, const std::string& theirs) override {
    set_.arrays.push_back({theirs, ours.dtype, ours.shape, ours.bytes});
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
  FromPyTorch(const ArraySet& state_dict, PyTorchStyle style) {
    // DataParallel and DistributedDataParallel put "module." in front of every name, and a model with a head
    // "transformer." in front of those of GPT-2.
    const std::string_view prefix = style == PyTorchStyle::gpt2 ? kTransformer : kReplicated;
    const auto has_prefix = [&](const NamedArray& array) {
      return array.name.starts_with(prefix) || (style == PyTorchStyle::gpt2 && is_head(array.name));
    };
    const bool have_prefix = std::all_of(state_dict.arrays.begin(), state_dict.arrays.end(), has_prefix);
    for (const NamedArray& array : state_dict.arrays) {
      const bool is_mask =
          array.name.ends_with(".attn.masked_bias") || (array.name.ends_with(".attn.bias") && array.shape.size() == 4);
      // Older files of GPT-2 hold the causal mask as a buffer; it is not a weight.
      if (style == PyTorchStyle::gpt2 && is_mask) continue;
      const bool is_shortened = have_prefix && array.name.starts_with(prefix);
      theirs_.emplace(array.name.substr(is_shortened ? prefix.size() : 0), &array);
    }
  }

  // A model with a head has the table of words a second time, which a savepoint has once.
  void take_tied_head() {
    const auto head = theirs_.find("lm_head.weight");
    const auto table = theirs_.find("wte.weight");
    if (head == theirs_.end() || table == theirs_.end()) return;
    const NamedArray& scores = *head->second;
    const NamedArray& words = *table->second;
    if (scores.shape != words.shape || scores.dtype != words.dtype || scores.bytes != words.bytes) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("{} of the state dict is not {}, and the savepoint has one array for both; use a "
                              "savepoint of a model with a layer \"lm_head\"",
                              quoted_text(head->first), quoted_text(table->first)));
    }
    theirs_.erase(head);
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

  std::string known_name(const std::string& usual, const std::string& other) const override {
    return !theirs_.contains(usual) && theirs_.contains(other) ? other : usual;
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

  void move_packed(const std::vector<const NamedArray*>& ours, const std::string& theirs,
                   const std::vector<Order>& orders, bool is_transposed) override {
    Shape shape = packed_shape(orders);
    if (is_transposed) std::swap(shape[0], shape[1]);
    std::vector<std::byte> bytes = fetch(theirs, *ours.front(), shape);
    if (is_transposed) bytes = transpose(bytes, size_bytes(ours.front()->dtype), shape, kMatrixAxes);
    // Parts lie one after another along the first axis, so each is a range of bytes.
    auto begin = bytes.begin();
    for (std::size_t part = 0; part < ours.size(); ++part) {
      const auto end = begin + static_cast<std::ptrdiff_t>(ours[part]->bytes.size());
      add_array(*ours[part], to_ours({begin, end}, size_bytes(ours[part]->dtype), orders[part]));
      begin = end;
    }
  }

  void keep(const NamedArray& ours) override { add_array(ours, ours.bytes); }

  void move_constant(Constant constant, const NamedArray& like, const std::string& theirs) override {
    if (fetch(theirs, like, like.shape) == constant_bytes(constant, like)) return;
    throw Error(ErrorCode::incompatible,
                fmt::format("{} of the state dict must be all {}, since the savepoint's layer has no such array; use a "
                            "savepoint of a model whose layer has it",
                            quoted_text(theirs), constant == Constant::ones ? "ones" : "zeros"));
  }

  // A layer of Holdfast does not count batches, so whatever the file says is right, and it may lack the counter.
  void count_batches(const std::string& theirs, std::int64_t /*batches*/) override { theirs_.erase(theirs); }

  // A second name of an array, or what the module was made with: a file that says otherwise is of another model.
  void copy(const NamedArray& ours, const std::string& theirs) override {
    // Found if the array came before its second name. The savepoint's own bytes are what constants are compared with.
    const auto original = std::ranges::find(arrays_, ours.name, &NamedArray::name);
    const std::vector<std::byte>& expected = original == arrays_.end() ? ours.bytes : original->bytes;
    if (fetch(theirs, ours, ours.shape) == expected) return;
    throw Error(ErrorCode::incompatible,
                fmt::format("{} of the state dict has other values than the savepoint's module, in which training does "
                            "not change it; use a savepoint of the same model",
                            quoted_text(theirs)));
  }

 private:
  static constexpr std::string_view kReplicated = "module.";
  static constexpr std::string_view kTransformer = "transformer.";

  static bool is_head(std::string_view name) { return name.starts_with("lm_head.") || name.starts_with("score."); }

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
    if (array.shape == shape && array.dtype != ours.dtype) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("{} of the state dict is {}, and array {} of the savepoint is {}; convert the state dict "
                              "to that type",
                              quoted_text(theirs), name(array.dtype), quoted_text(ours.name), name(ours.dtype)));
    }
    if (array.shape != shape) {
      throw Error(ErrorCode::incompatible,
                  fmt::format("{} of the state dict is {}{}, but array {} of the savepoint "
                              "needs {}{}; use a savepoint of the same model",
                              quoted_text(theirs), name(array.dtype), text_of_shape(array.shape),
                              quoted_text(ours.name), name(ours.dtype), text_of_shape(shape)));
    }
    // Arrays that no layer takes are an error at the end.
    theirs_.erase(found);
    return array.bytes;
  }

  std::map<std::string, const NamedArray*> theirs_;  // arrays that no layer has taken
  std::vector<NamedArray> arrays_;
};

}  // namespace

ArraySet to_pytorch(const ArraySet& savepoint, PyTorchStyle style) {
  check_arrays("a PyTorch state dict", views(savepoint.arrays));
  ToPyTorch exchange;
  walk_layers(savepoint, exchange, style);
  ArraySet state_dict = exchange.take();
  const auto is_of_attention = [](const NamedArray& array) { return array.name.ends_with(".c_attn.weight"); };
  // Other models would get kernels that are not transposed, which no module of PyTorch takes.
  if (style == PyTorchStyle::gpt2 && std::ranges::none_of(state_dict.arrays, is_of_attention)) {
    throw Error(
        ErrorCode::unsupported,
        "the model has no attention of GPT-2, so it has no state dict of that model; write it with the names and "
        "layouts of PyTorch instead (--to pytorch)");
  }
  return state_dict;
}

ArraySet from_pytorch(const ArraySet& state_dict, const ArraySet& like) {
  check_arrays("a savepoint from a PyTorch state dict", views(state_dict.arrays));
  check_arrays("a savepoint like this one", views(like.arrays));
  const bool is_gpt2 = std::any_of(state_dict.arrays.begin(), state_dict.arrays.end(),
                                   [](const NamedArray& array) { return array.name.ends_with(".c_attn.weight"); });
  const PyTorchStyle style = is_gpt2 ? PyTorchStyle::gpt2 : PyTorchStyle::modules;
  FromPyTorch exchange(state_dict, style);
  const bool has_head = std::any_of(like.arrays.begin(), like.arrays.end(),
                                    [](const NamedArray& array) { return array.name.ends_with("/lm_head/kernel"); });
  if (is_gpt2 && !has_head) exchange.take_tied_head();
  walk_layers(like, exchange, style);
  exchange.require_all_taken();
  return {.arrays = exchange.take(), .metadata = like.metadata};
}

}  // namespace holdfast::format
