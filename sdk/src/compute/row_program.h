#pragma once

// Functions of elements and reductions that follow one another in rows, as one operation of the host. A few rows at a
// time go through all instructions, so that what lies between them stays in the caches of a core. Each instruction
// has the bits that it has alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/array_kernels.h"

namespace holdfast::compute {

// What an array has for each row: `width` numbers, one number, or nothing of its own. An array of the last two kinds
// has the same `width` numbers, or the same one, for all rows.
enum class RowArray : std::uint8_t { wide, narrow, column, number };

struct RowOperand {
  enum class Kind : std::uint8_t { input, result, constant };

  Kind kind = Kind::input;
  std::size_t index = 0;
};

struct RowInstruction {
  enum class Kind : std::uint8_t {
    elements,    // function(operands), of each element; wide or narrow
    reduction,   // of function(operands) over a row; narrow
    column_sum,  // of function(operands) over all rows; a column, which is an output
  };

  Kind kind = Kind::elements;
  // A reduction or a column sum takes this first: copy, square or multiply, of operands that are wide.
  ElementFunction function = ElementFunction::copy;
  ReductionKind reduction = ReductionKind::sum;
  RowOperand operands[3]{};
  // The operands of a narrow instruction are narrow or numbers.
  bool is_wide = true;
  std::optional<std::size_t> output{};  // the output that is the result
};

struct RowProgram {
  std::int64_t width = 1;
  std::vector<RowArray> inputs{};
  std::vector<float> constants{};
  std::vector<RowInstruction> instructions{};
};

class RowOperation {
 public:
  virtual ~RowOperation() = default;

  // An output may be a wide input that no later instruction reads. Allocates nothing; one thread at a time calls it.
  virtual void run(std::span<const float* const> inputs, std::span<float* const> outputs) = 0;
  // What it keeps between instructions.
  virtual std::size_t own_bytes() const = 0;
};

// For `rows` rows, on the calling thread of the host. Sums over all rows are in the order of the rows.
std::unique_ptr<RowOperation> make_row_operation(RowProgram program, std::int64_t rows);

}  // namespace holdfast::compute
