#pragma once

// Savepoints of models for tests of the exchange with PyTorch, and what is read from them.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"

namespace holdfast::format::pytorch_sets {

using Shape = std::vector<std::uint64_t>;

NamedArray array_of(const std::string& name, const Shape& shape, const std::vector<float>& values);

// Gives the elements values that differ within an array and between the arrays of a test.
NamedArray numbered(const std::string& name, const Shape& shape);

struct LayerOf {
  std::string kind;
  std::string name;
};

// A savepoint of a chain of layers without options.
ArraySet savepoint_of(const Shape& input_shape, const std::vector<LayerOf>& layers, std::vector<NamedArray> arrays);

// The array of this name; throws Error{not_found} without one.
const NamedArray& get(const ArraySet& set, const std::string& name);
float at(const NamedArray& array, const Shape& index);
std::vector<std::string> names_of(const ArraySet& set);

// Converts to PyTorch and back. The arrays that the second conversion fills are zeroed before, so all values must come
// from the state dict.
void expect_round_trip(const ArraySet& set);

}  // namespace holdfast::format::pytorch_sets
