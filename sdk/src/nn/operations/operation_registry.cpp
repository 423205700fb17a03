// The names stand in files of models, so none of them may change.

#include "nn/operations/operation_registry.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

using compute::ReductionKind;

std::shared_ptr<const Operation> make_operation(const std::string& name, ConfigReader& config) {
  if (name == "reshape") return read_reshape(config);
  if (name == "broadcast") return read_broadcast(config);
  if (name == "stop_gradient") return make_stop_gradient();
  if (name == "cast") return make_cast();
  if (name == "sum") return read_reduction(ReductionKind::sum, config);
  if (name == "mean") return read_reduction(ReductionKind::mean, config);
  if (name == "largest") return read_reduction(ReductionKind::maximum, config);
  if (name == "slice") return read_slice(config);
  if (name == "pad") return read_pad(config);
  if (name == "concatenate") return read_concatenate(config);
  if (name == "permute") return read_permute(config);
  if (name == "flip") return read_flip(config);
  if (name == "pooling") return read_pooling_operation(config);
  if (name == "weight") return read_weight(config);
  if (name == "einsum") return read_einsum(config);
  if (name == "matmul") return make_matmul();
  if (name == "gather") return make_gather();
  // Activations have operations of their own, with names that no other function of elements has in a file.
  for (const Activation activation :
       {Activation::relu, Activation::sigmoid, Activation::tanh, Activation::gelu, Activation::softmax}) {
    if (holdfast::name(activation) == name) return read_activation_operation(activation);
  }
  try {
    // What has no other reader must be a function of elements. Its error does not know that a file is read, so the
    // sentence says so.
    return read_element_operation(compute::element_function_from_name(name), config);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_file, fmt::format("operation \"{}\" of the model graph: {}", name, error.what()));
  }
}

}  // namespace holdfast
