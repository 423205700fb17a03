#include "pytorch/pytorch_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bytes/array_prefixes.h"
#include "bytes/byte_source.h"
#include "holdfast/base/error.h"

namespace holdfast::format {

Order unchanged(const std::vector<std::uint64_t>& shape) {
  Order order{.seen = shape, .axes = {}, .theirs = shape};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) order.axes.push_back(axis);
  return order;
}

Order transposed(const std::vector<std::uint64_t>& shape, std::vector<std::size_t> axes) {
  Order order{.seen = shape, .axes = std::move(axes), .theirs = {}};
  for (const std::size_t axis : order.axes) order.theirs.push_back(shape[axis]);
  return order;
}

std::string name_in_pytorch(const GraphLayer& layer, const std::string& entry) {
  std::string module = layer.name;
  std::replace(module.begin(), module.end(), '/', '.');
  return module + "." + entry;
}

void refuse_layer(const GraphLayer& layer, const std::string& problem) {
  throw Error(ErrorCode::unsupported, fmt::format("layer {} is of kind {}, which {}; leave it out of the model",
                                                  quoted_text(layer.name), quoted_text(layer.kind), problem));
}

void refuse_array(const NamedArray& array, const std::string& problem) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("array {} of the savepoint {}; give a savepoint that fits its graph", quoted_text(array.name),
                          problem));
}

LayerArrays::LayerArrays(const ArraySet& savepoint) {
  for (const NamedArray& array : savepoint.arrays) {
    if (array.name.starts_with(kModelPrefix)) arrays_.emplace(array.name, &array);
  }
}

const NamedArray* LayerArrays::find(const GraphLayer& layer, const std::string& entry) {
  const auto found = arrays_.find(std::string(kModelPrefix) + layer.name + "/" + entry);
  if (found == arrays_.end()) return nullptr;
  claimed_.insert(found->first);
  return found->second;
}

const NamedArray& LayerArrays::get(const GraphLayer& layer, const std::string& entry, std::size_t axes) {
  const NamedArray* array = find(layer, entry);
  if (array == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the savepoint has no array {} for its {} layer {}; give a complete savepoint",
                            quoted_text(entry), quoted_text(layer.kind), quoted_text(layer.name)));
  }
  if (array->shape.size() != axes) {
    refuse_array(*array,
                 fmt::format("has shape {}, but a {} needs {} axes", text_of_shape(array->shape), layer.kind, axes));
  }
  return *array;
}

void LayerArrays::require_all_claimed() const {
  for (const auto& [name, array] : arrays_) {
    if (claimed_.contains(name)) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("array {} has no counterpart in PyTorch for a layer of the graph; remove it or the layer",
                            quoted_text(name)));
  }
}

}  // namespace holdfast::format
