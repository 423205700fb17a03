#include "unit/exchange/support/keras_trees.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace holdfast::format::testing {

NamedArray floats(const std::string& name, const std::vector<std::uint64_t>& shape) {
  std::size_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;
  std::vector<float> values(elements);
  const auto first = static_cast<float>(std::hash<std::string>{}(name) % 10'000);
  for (std::size_t i = 0; i < elements; ++i) values[i] = first + static_cast<float>(i) / 1024;
  NamedArray array{.name = name, .dtype = DType::f32, .shape = shape, .bytes = std::vector<std::byte>(4 * elements)};
  if (elements > 0) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

NamedArray count(const std::string& name, std::int32_t value) {
  NamedArray array{.name = name, .dtype = DType::i32, .shape = {}, .bytes = std::vector<std::byte>(4)};
  std::memcpy(array.bytes.data(), &value, sizeof(value));
  return array;
}

Hdf5Tree tree(std::vector<Hdf5Group> groups, std::vector<NamedArray> datasets) {
  std::map<std::string, std::vector<Hdf5Attribute>> all = {{"", {}}};
  for (Hdf5Group& group : groups) all[group.path] = std::move(group.attributes);
  for (const NamedArray& dataset : datasets) {
    for (std::size_t end = dataset.name.find('/'); end != std::string::npos; end = dataset.name.find('/', end + 1)) {
      all.try_emplace(dataset.name.substr(0, end));
    }
  }
  Hdf5Tree result;
  for (auto& [path, attributes] : all) result.groups.push_back({path, std::move(attributes)});
  for (NamedArray& dataset : datasets) result.datasets.push_back({std::move(dataset), {}});
  std::sort(result.datasets.begin(), result.datasets.end(),
            [](const Hdf5Dataset& a, const Hdf5Dataset& b) { return a.array.name < b.array.name; });
  return result;
}

Json layer(const std::string& class_name, const std::string& name, Json options) {
  options["name"] = name;
  return {{"class_name", class_name}, {"config", std::move(options)}};
}

Json sequential(std::vector<Json> layers) {
  return {{"class_name", "Sequential"}, {"config", {{"name", "net"}, {"layers", std::move(layers)}}}};
}

const NamedArray* find(const std::vector<NamedArray>& arrays, const std::string& name) {
  const auto found =
      std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

std::vector<std::string> names(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> result;
  for (const NamedArray& array : arrays) result.push_back(array.name);
  std::sort(result.begin(), result.end());
  return result;
}

Json dense_savepoint_metadata(bool use_bias) {
  return {{"kind", "savepoint"},
          {"step", 7},
          {"configuration",
           {{"optimizer", {{"kind", "adam"}, {"learning_rate", 0.001}}}, {"loss", {{"kind", "mean_squared_error"}}}}},
          {"graph",
           {{"format", "holdfast.sequential"},
            {"version", 1},
            {"input_shape", {2}},
            {"layers", {{{"kind", "Dense"}, {"name", "d"}, {"config", {{"units", 3}, {"use_bias", use_bias}}}}}}}}};
}

}  // namespace holdfast::format::testing
