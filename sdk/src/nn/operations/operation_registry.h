#pragma once

// Operations that stand in files of models: those that an application wrote between layers. A file names them, and each
// source of operations reads the options of its own.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/graph/config.h"
#include "nn/graph/operation.h"

namespace holdfast {

// The operation that Operation::write_config() described. Fit for text from outside: throws Error{invalid_file} for a
// name that no operation of a file has, and for options that it cannot have.
std::shared_ptr<const Operation> make_operation(const std::string& name, ConfigReader& config);

// All names that files have for them, but those of functions of elements.
std::vector<std::string_view> names_of_operations();

// The readers of options, one for each source of operations.
std::shared_ptr<const Operation> read_element_operation(compute::ElementFunction function, ConfigReader& config);
std::shared_ptr<const Operation> read_broadcast(ConfigReader& config);
std::shared_ptr<const Operation> make_stop_gradient();
std::shared_ptr<const Operation> make_cast();
std::shared_ptr<const Operation> read_activation_operation(Activation activation);
std::shared_ptr<const Operation> read_reshape(ConfigReader& config);
std::shared_ptr<const Operation> read_reduction(compute::ReductionKind kind, ConfigReader& config);
std::shared_ptr<const Operation> read_slice(ConfigReader& config);
std::shared_ptr<const Operation> read_pad(ConfigReader& config);
std::shared_ptr<const Operation> read_concatenate(ConfigReader& config);
std::shared_ptr<const Operation> read_permute(ConfigReader& config);
std::shared_ptr<const Operation> read_flip(ConfigReader& config);
std::shared_ptr<const Operation> read_pooling_operation(ConfigReader& config);
std::shared_ptr<const Operation> read_weight(ConfigReader& config);
std::shared_ptr<const Operation> read_einsum(ConfigReader& config);
std::shared_ptr<const Operation> make_matmul();
std::shared_ptr<const Operation> make_gather();

}  // namespace holdfast
