#pragma once

// The walk over a savepoint's graph that says which arrays correspond in PyTorch, and how their axes are ordered.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "holdfast/format/exchange/pytorch.h"

namespace holdfast::format {

// "[2, 3]"
std::string text_of_shape(const std::vector<std::uint64_t>& shape);

// The order of one of our arrays' elements in PyTorch: viewed in shape `seen`, transposed, then viewed in shape
// `theirs`.
struct Order {
  std::vector<std::uint64_t> seen;
  std::vector<std::size_t> axes;
  std::vector<std::uint64_t> theirs;
  bool swaps_gates = false;  // swaps the first two of three blocks of rows
};

enum class Constant { zeros, ones };

// One of the two directions. `ours` is an array of the savepoint, or of the savepoint that the result must be like.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Which of two names of one array the other side has. It has `usual` where it is written and not read.
  virtual std::string known_name(const std::string& usual, const std::string& other) const = 0;
  virtual void move(const NamedArray& ours, const std::string& theirs, const Order& order) = 0;
  // Our single bias is the sum of PyTorch's two.
  virtual void move_sum(const NamedArray& ours, const std::string& first, const std::string& second) = 0;
  // The two rows of our array are two arrays in PyTorch.
  virtual void move_rows(const NamedArray& ours, const std::string& first, const std::string& second,
                         const Order& row) = 0;
  // Our arrays of one type, one after another along the first axis of PyTorch's, such as three projections of
  // attention.
  // `is_transposed` says that PyTorch's array, a matrix then, is transposed after that.
  virtual void move_packed(const std::vector<const NamedArray*>& ours, const std::string& theirs,
                           const std::vector<Order>& orders, bool is_transposed = false) = 0;
  // An array that PyTorch's files do not have, since it follows from the options of its layer.
  virtual void keep(const NamedArray& ours) = 0;
  // An array that PyTorch has where our layer has a constant. Its shape and type are those of `like`.
  virtual void move_constant(Constant constant, const NamedArray& like, const std::string& theirs) = 0;
  // The number of batches that the running averages saw. PyTorch needs it only for averages without momentum, and
  // layers of ours do not count it.
  virtual void count_batches(const std::string& theirs, std::int64_t batches = 0) = 0;
  // An array that PyTorch has besides those of the savepoint, with these values.
  virtual void copy(const NamedArray& ours, const std::string& theirs) = 0;
};

// Visits each layer of the savepoint's graph. Throws Error{invalid_argument} for arrays that do not fit the graph and
// Error{unsupported} for a layer that PyTorch does not have.
void walk_layers(const ArraySet& savepoint, Exchange& exchange, PyTorchStyle style);

}  // namespace holdfast::format
