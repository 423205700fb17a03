#pragma once

// A few general kernels of which most layers are made: functions of elements, copies with strides, and reductions. A
// back end implements these once, so that a new layer needs no code for a device.
//
// Arrays are f32, or i32 where integers are named. Calls queue work like the operations of backend.h, and need no
// memory. See docs/decisions/models.md.

#include <cstdint>
#include <span>
#include <string_view>

#include "compute/attention_scores.h"
#include "compute/recurrent_cells.h"
#include "core/host_device.h"
#include "holdfast/base/dtype.h"

namespace holdfast::compute {

// Axes after those that can be joined have been.
inline constexpr std::size_t kMaximumAxes = 6;
// A number for each axis. Device code cannot use std::array.
struct Axes {
  std::int64_t of_axis[kMaximumAxes];

  HOLDFAST_HOST_DEVICE std::int64_t& operator[](std::size_t axis) { return of_axis[axis]; }
  HOLDFAST_HOST_DEVICE const std::int64_t& operator[](std::size_t axis) const { return of_axis[axis]; }
};

enum class ElementFunction : std::uint8_t {
  // of one element
  copy,
  negative,
  absolute,
  square,
  square_root,
  reciprocal_root,
  exponential,
  logarithm,
  relu,
  sigmoid,
  tanh,
  gelu,        // x / 2 * (1 + erf(x / sqrt(2)))
  gelu_tanh,   // its approximation by tanh (Hendrycks and Gimpel, 2016)
  silu,        // x * sigmoid(x)
  softplus,    // log(1 + exp(x))
  gelu_slope,  // the derivatives of those that have no short one
  gelu_tanh_slope,
  silu_slope,
  sign,  // -1, 0 or 1
  // of two
  add,
  subtract,
  multiply,
  divide,
  power,
  minimum,
  maximum,
  less,  // 1 or 0
  less_equal,
  equal,
  // of three
  select,  // a is not 0 ? b : c
};

// "add", "square_root": also the names in files of models, so never change one.
std::string_view name_of(ElementFunction function);
ElementFunction element_function_from_name(std::string_view text);  // throws Error{invalid_argument}
// How many operands it takes: 1 to 3.
std::size_t operand_count(ElementFunction function);

// A number of a program: an input, the result of an earlier instruction, or a constant.
struct ElementOperand {
  enum class Kind : std::uint8_t { input, result, constant };

  Kind kind = Kind::input;
  std::uint8_t index = 0;
};

struct ElementInstruction {
  ElementFunction function = ElementFunction::copy;
  ElementOperand operands[3]{};
};

// Instructions that run for each element of the output, one after another. A value type without pointers, so that a
// kernel of a device may take it as an argument.
struct ElementProgram {
  static constexpr std::size_t kMaximumInstructions = 24;
  static constexpr std::size_t kMaximumInputs = 8;
  static constexpr std::size_t kMaximumConstants = 8;
  static constexpr std::size_t kMaximumOutputs = 4;

  ElementInstruction instructions[kMaximumInstructions]{};
  float constants[kMaximumConstants]{};
  std::uint8_t outputs[kMaximumOutputs]{};  // the instructions whose results are written
  std::uint8_t instruction_count = 0;
  std::uint8_t input_count = 0;
  std::uint8_t constant_count = 0;
  std::uint8_t output_count = 0;
};

// The outputs are row-major arrays of `extents`. Input i is read at the sum of index[axis] * strides[i][axis]; a stride
// of 0 repeats it along the axis.
struct ElementShape {
  std::size_t axes = 1;
  Axes extents{};
  Axes strides[ElementProgram::kMaximumInputs]{};
};

// to[to_offset + sum of index * to_strides] = from[from_offset + sum of index * from_strides], for all indices below
// the extents. Strides may be negative, and those of `from` may be 0.
struct StridedCopy {
  std::size_t axes = 1;
  Axes extents{};
  Axes from_strides{};
  Axes to_strides{};
  std::int64_t from_offset = 0;
  std::int64_t to_offset = 0;
};

enum class ReductionKind : std::uint8_t { sum, mean, maximum };

// to[o, i] = the sum, mean or largest over r of from[o, r, i]. The order of a sum depends on the extents alone.
struct RowReduction {
  ReductionKind kind = ReductionKind::sum;
  std::int64_t outer = 1;
  std::int64_t reduced = 1;  // at least 1
  std::int64_t inner = 1;
};

// An array of each row (holdfast/core/row_layout.h), or an array of 4-byte elements, to an array of its own: to[r, e] =
// element e of the array in row r. Integers and booleans become i32, or f32 by the nearest number; bf16 becomes f32. Of
// an i64, the lower half is taken.
struct RowConversion {
  DType from = DType::f32;
  DType to = DType::f32;  // f32 or i32
  std::int64_t rows = 0;
  std::int64_t elements = 0;   // of a row
  std::int64_t row_words = 0;  // from a row to the next
  std::int64_t first_word = 0;
};

// Rows of a table, by number: to[i] = table[ids[i]], all rows `width` floats wide.
struct RowGather {
  std::int64_t ids = 0;
  std::int64_t table_rows = 1;
  std::int64_t width = 1;
  std::int64_t ids_per_sample = 1;  // for messages
};

class ArrayKernels {
 public:
  virtual ~ArrayKernels() = default;

  // An output may be an input whose strides are those of the outputs.
  virtual void elements(const ElementProgram& program, const ElementShape& shape, std::span<const float* const> inputs,
                        std::span<float* const> outputs) = 0;
  virtual void copy(const StridedCopy& copy, const float* from, float* to) = 0;
  virtual void reduce(const RowReduction& reduction, const float* from, float* to) = 0;
  virtual void convert(const RowConversion& conversion, const float* from, float* to) = 0;
  // Ids are i32. One that the table does not have throws Error{invalid_argument} on the CPU, and makes a row of NaN on
  // a device.
  virtual void gather(const RowGather& gather, const float* table, const float* ids, float* to) = 0;
  // The reverse: table[ids[i]] = the sum of from[i], in the order of i; rows without an id become zero.
  virtual void scatter_sum(const RowGather& gather, const float* from, const float* ids, float* table) = 0;

  // `shares` may be `scores`. Without a mask it is null.
  virtual void attention_shares(const AttentionScores& scores, const float* from, const float* mask, float* shares) = 0;
  // The gradient of the scores; it may be that of the shares.
  virtual void attention_shares_backward(const AttentionScores& scores, const float* shares,
                                         const float* shares_gradient, float* scores_gradient) = 0;

  virtual void cells_forward(const RecurrentCells& cells, const CellsForward& arrays) = 0;
  virtual void cells_backward(const RecurrentCells& cells, const CellsBackward& arrays) = 0;
};

}  // namespace holdfast::compute
