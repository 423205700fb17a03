// The names stand in files of models, so none of them may change.

#include "nn/operations/operation_registry.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

using compute::ReductionKind;

namespace {

struct NamedReader {
  std::string_view name;
  std::shared_ptr<const Operation> (*read)(ConfigReader& config);
};

template <ReductionKind kKind>
std::shared_ptr<const Operation> read_reduction_of(ConfigReader& config) {
  return read_reduction(kKind, config);
}
// Activations have operations of their own, with names that no other function of elements has in a file.
template <Activation kActivation>
std::shared_ptr<const Operation> read_activation_of(ConfigReader&) {
  return read_activation_operation(kActivation);
}

constexpr NamedReader kReaders[] = {
    {"reshape", read_reshape},
    {"broadcast", read_broadcast},
    {"stop_gradient", [](ConfigReader&) { return make_stop_gradient(); }},
    {"cast", [](ConfigReader&) { return make_cast(); }},
    {"sum", read_reduction_of<ReductionKind::sum>},
    {"mean", read_reduction_of<ReductionKind::mean>},
    {"largest", read_reduction_of<ReductionKind::maximum>},
    {"slice", read_slice},
    {"pad", read_pad},
    {"concatenate", read_concatenate},
    {"permute", read_permute},
    {"flip", read_flip},
    {"pooling", read_pooling_operation},
    {"weight", read_weight},
    {"einsum", read_einsum},
    {"matmul", [](ConfigReader&) { return make_matmul(); }},
    {"gather", [](ConfigReader&) { return make_gather(); }},
    {"relu", read_activation_of<Activation::relu>},
    {"sigmoid", read_activation_of<Activation::sigmoid>},
    {"tanh", read_activation_of<Activation::tanh>},
    {"gelu", read_activation_of<Activation::gelu>},
    {"softmax", read_activation_of<Activation::softmax>},
};

}  // namespace

std::vector<std::string_view> names_of_operations() {
  std::vector<std::string_view> names;
  for (const NamedReader& reader : kReaders) names.push_back(reader.name);
  return names;
}

std::shared_ptr<const Operation> make_operation(const std::string& name, ConfigReader& config) {
  for (const NamedReader& reader : kReaders) {
    if (reader.name == name) return reader.read(config);
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
