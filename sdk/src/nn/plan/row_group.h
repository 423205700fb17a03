#pragma once

// The program of operations that a plan runs row by row (row_fusion.h).

#include <functional>
#include <optional>
#include <vector>

#include "compute/row_program.h"
#include "nn/graph/graph.h"

namespace holdfast {

// The shape of the values whose rows a group computes. A row is their last axis.
struct Rows {
  Shape shape;

  std::int64_t width() const { return shape[shape.rank() - 1]; }
  std::int64_t of_sample() const { return shape.element_count() / width(); }
  // How an array lies to these rows; empty if it does not.
  std::optional<compute::RowArray> array(const ValueSpec& spec) const;
};

struct RowGroup {
  compute::RowProgram program{};
  std::vector<ArrayId> inputs{};
  std::vector<ArrayId> outputs{};
  // The input in whose place output 0 may be written, as it is not needed later.
  std::optional<std::size_t> overwritable_input{};
};

// `members` are operations of the graph in order, each an element or a row part that fits to the rows. Results for
// which `is_needed_later` are outputs.
RowGroup make_row_group(const Graph& graph, const Rows& rows, const std::vector<std::size_t>& members,
                        const std::function<bool(ArrayId)>& is_needed_later);

}  // namespace holdfast
