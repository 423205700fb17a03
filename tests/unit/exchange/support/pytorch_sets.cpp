#include "unit/exchange/support/pytorch_sets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/pytorch.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format::pytorch_sets {

NamedArray array_of(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, DType::f32, shape, bytes};
}

NamedArray numbered(const std::string& name, const Shape& shape) {
  std::size_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  float start = 1;
  for (const char c : name) start += static_cast<float>(1000 * (c % 16));
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(start + static_cast<float>(i));
  return array_of(name, shape, values);
}

ArraySet savepoint_of(const Shape& input_shape, const std::vector<LayerOf>& layers, std::vector<NamedArray> arrays) {
  nlohmann::json list = nlohmann::json::array();
  for (const LayerOf& layer : layers) {
    list.push_back({{"kind", layer.kind}, {"name", layer.name}, {"config", nlohmann::json::object()}});
  }
  const nlohmann::json graph = {
      {"format", "holdfast.sequential"}, {"version", 1}, {"input_shape", input_shape}, {"layers", list}};
  std::sort(arrays.begin(), arrays.end(), [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  return {.arrays = std::move(arrays), .metadata = nlohmann::json{{"kind", "savepoint"}, {"graph", graph}}.dump()};
}

const NamedArray& get(const ArraySet& set, const std::string& name) {
  const auto found =
      std::find_if(set.arrays.begin(), set.arrays.end(), [&](const NamedArray& array) { return array.name == name; });
  if (found == set.arrays.end()) throw Error(ErrorCode::not_found, "the set has no " + name);
  return *found;
}

float at(const NamedArray& array, const Shape& index) {
  std::uint64_t offset = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) offset = offset * array.shape[axis] + index[axis];
  float value = 0;
  std::memcpy(&value, array.bytes.data() + offset * sizeof value, sizeof value);
  return value;
}

std::vector<std::string> names_of(const ArraySet& set) {
  std::vector<std::string> names;
  for (const NamedArray& array : set.arrays) names.push_back(array.name);
  return names;
}

void expect_round_trip(const ArraySet& set) {
  ArraySet like = set;
  for (NamedArray& array : like.arrays) std::fill(array.bytes.begin(), array.bytes.end(), std::byte{0});

  const ArraySet back = from_pytorch(to_pytorch(set), like);

  testing::expect_equal(back.arrays, set.arrays);
  EXPECT_EQ(back.metadata, set.metadata);
}

}  // namespace holdfast::format::pytorch_sets
