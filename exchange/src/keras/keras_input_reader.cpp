#include "keras/keras_input_reader.h"

#include <fmt/format.h>

#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/shape_bytes.h"
#include "keras_layers/keras_layer_reader.h"

namespace holdfast::format {

ModelGraphInput read_keras_input(const std::string& name, const Json& batch_shape, const Json& options) {
  ModelGraphInput input{.name = name, .shape = {}};
  if (!batch_shape.is_array() || batch_shape.empty()) {
    refuse_keras_layer(name, "InputLayer", "does not say its shape; build the model, and save it again");
  }
  if (batch_shape.size() == 1) {
    refuse_keras_layer(name, "InputLayer",
                       "has one number for each sample and no axis, and no input of Holdfast is without one; give it "
                       "the shape (1,)");
  }
  if (batch_shape.size() - 1 > kMaxAxes) {
    refuse_keras_layer(name, "InputLayer",
                       fmt::format("has {} axes without that of the samples, and no model of Holdfast has more than "
                                   "{}; give it fewer",
                                   batch_shape.size() - 1, kMaxAxes));
  }
  std::int64_t elements = 1;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
  // Axis 0 counts samples, and no shape of Holdfast has it.
  for (std::size_t axis = 1; axis < batch_shape.size(); ++axis) {
    const std::int64_t extent = integer_value(batch_shape[axis]).value_or(0);
    // Divided first, so that the product of the extents cannot overflow.
    if (extent < 1 || extent > kMostElements / elements) {
      refuse_keras_layer(name, "InputLayer",
                         fmt::format("has no fixed extent along axis {}, which Holdfast needs; give it one", axis));
    }
    input.shape.push_back(extent);
    elements *= extent;
  }
  const Json& dtype = member(options, "dtype");
  const std::string type = dtype.is_string() ? dtype.get<std::string>() : "";
  const auto found = dtype.is_null() ? input_type_of_keras("float32") : input_type_of_keras(type);
  if (!found) {
    refuse_keras_layer(name, "InputLayer",
                       fmt::format("is of type {}; give the model an input of {}", quoted_text(type.substr(0, 60)),
                                   known_keras_input_types()));
  }
  input.dtype = *found;
  return input;
}

}  // namespace holdfast::format
