#pragma once

// The instructions of a row program in the order in which the host runs them: alone, or some in one loop.

#include <optional>
#include <vector>

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/row_program.h"

namespace holdfast::compute {

struct RowStep {
  // One instruction, or a chain of functions of elements.
  std::vector<std::size_t> instructions{};
  // A chain has these operands, without the result before, and these results that others read.
  RowOperand first{};
  RowOperand operands[ElementChain::kMaximumLength]{};
  bool is_kept[ElementChain::kMaximumLength]{};
  // The reduction of the last result, taken in the same loop.
  ChainSum sum = ChainSum::none;
  std::optional<std::size_t> reduction{};
  RowOperand factor{};

  bool is_chain() const { return instructions.size() > 1 || reduction.has_value(); }
};

// Each instruction runs after those that it reads. What reads an input runs no later than the instructions after it
// which write whole rows.
std::vector<RowStep> find_row_steps(const RowProgram& program);

// Whether an instruction reads a result.
bool reads_result(const RowInstruction& instruction, std::size_t result);

}  // namespace holdfast::compute
