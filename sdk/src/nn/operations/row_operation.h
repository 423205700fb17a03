#pragma once

// A row program (compute/row_program.h) as an operation of a graph.

#include <memory>
#include <optional>

#include "compute/row_program.h"
#include "nn/graph/value_node.h"

namespace holdfast {

struct RowOperationOptions {
  compute::RowProgram program;
  std::int64_t rows_of_sample = 1;
  std::vector<ValueSpec> outputs;
  // The input in whose place output 0 may be written.
  std::optional<std::size_t> overwritable_input;
};

// It has no gradient and stands in no file, since only plans of the host make it.
std::shared_ptr<const Operation> make_row_operation(RowOperationOptions options);

}  // namespace holdfast
