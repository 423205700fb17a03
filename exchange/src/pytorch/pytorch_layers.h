#pragma once

// What the walk does for all kinds of layers: arrays of a savepoint by layer, orders of axes, and names in PyTorch.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "pytorch/pytorch_graph.h"
#include "pytorch/pytorch_walk.h"

namespace holdfast::format {

// The axes stay where they are.
Order unchanged(const std::vector<std::uint64_t>& shape);
Order transposed(const std::vector<std::uint64_t>& shape, std::vector<std::size_t> axes);

// "encoder.dense.weight": PyTorch separates names by dots.
std::string name_in_pytorch(const GraphLayer& layer, const std::string& entry);

// Throws Error{unsupported} that names the layer: "layer X is of kind Y, which PROBLEM".
[[noreturn]] void refuse_layer(const GraphLayer& layer, const std::string& problem);
// Throws Error{invalid_argument}: "array X of the savepoint PROBLEM".
[[noreturn]] void refuse_array(const NamedArray& array, const std::string& problem);

// The arrays of one savepoint, by layer and entry. The savepoint must outlive the object.
class LayerArrays {
 public:
  explicit LayerArrays(const ArraySet& savepoint);

  // Returns null if the layer has no such entry. Looking an array up claims it: the walk looks up what it converts.
  const NamedArray* find(const GraphLayer& layer, const std::string& entry);
  // Throws Error{invalid_argument} if the layer has no such entry, or one with another number of axes.
  const NamedArray& get(const GraphLayer& layer, const std::string& entry, std::size_t axes);
  // Throws Error{unsupported} for an array that no layer took, which would be lost in silence.
  void require_all_claimed() const;

 private:
  std::map<std::string, const NamedArray*> arrays_;
  std::set<std::string> claimed_;
};

}  // namespace holdfast::format
