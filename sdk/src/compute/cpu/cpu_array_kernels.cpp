// An element program runs instruction by instruction over blocks of elements that stay in the first-level cache, so
// that each instruction is one simple loop. A block lies in one row of the innermost axis, in which an input advances
// by its stride or, if that is 0, is one number.

#include "compute/cpu/cpu_array_kernels.h"

#include <algorithm>
#include <array>

#include "compute/arithmetic/element_functions.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

namespace {

constexpr std::int64_t kBlockElements = 256;

// Counts through all indices of some axes, the last one fastest, and keeps the offsets that belong to each.
template <std::size_t kOffsets>
class Odometer {
 public:
  Odometer(std::size_t axes, const Axes& extents) : axes_(axes), extents_(extents) {}

  std::array<std::int64_t, kOffsets> offsets{};

  // Goes on to the next index; false after the last one.
  bool next(const std::array<const Axes*, kOffsets>& strides) {
    for (std::size_t axis = axes_; axis-- > 0;) {
      const bool wraps = ++index_[axis] == extents_[axis];
      for (std::size_t i = 0; i < kOffsets; ++i) {
        if (strides[i] == nullptr) continue;
        offsets[i] += wraps ? -(extents_[axis] - 1) * (*strides[i])[axis] : (*strides[i])[axis];
      }
      if (!wraps) return true;
      index_[axis] = 0;
    }
    return false;
  }

 private:
  const std::size_t axes_;
  const Axes& extents_;
  Axes index_{};
};

// Numbers of a block: an array, or one number for all elements.
struct Lane {
  const float* values = nullptr;
  bool is_scalar = false;
};

struct RunInstruction {
  std::array<Lane, 3> operands;
  std::int64_t count;
  float* result;

  template <ElementFunction kFunction>
  void run() const {
    const auto [a, b, c] = operands;
    if (a.is_scalar || b.is_scalar || c.is_scalar) return run_mixed<kFunction>();
    for (std::int64_t i = 0; i < count; ++i) result[i] = element<kFunction>(a.values[i], b.values[i], c.values[i]);
  }

  template <ElementFunction kFunction>
  void run_mixed() const {
    const std::int64_t a = operands[0].is_scalar ? 0 : 1;
    const std::int64_t b = operands[1].is_scalar ? 0 : 1;
    const std::int64_t c = operands[2].is_scalar ? 0 : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      result[i] = element<kFunction>(operands[0].values[i * a], operands[1].values[i * b], operands[2].values[i * c]);
    }
  }
};

class ElementRun {
 public:
  ElementRun(const ElementProgram& program, const ElementShape& shape, std::span<const float* const> inputs,
             std::span<float* const> outputs)
      : program_(program), shape_(shape), inputs_(inputs), outputs_(outputs) {}

  void run();

 private:
  void run_block(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                 std::int64_t count, std::int64_t output_offset);
  void load_inputs(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                   std::int64_t count);
  Lane lane(const ElementOperand& operand) const;

  const ElementProgram& program_;
  const ElementShape& shape_;
  const std::span<const float* const> inputs_;
  const std::span<float* const> outputs_;
  std::array<Lane, ElementProgram::kMaximumInputs> lanes_{};
  float gathered_[ElementProgram::kMaximumInputs][kBlockElements];
  float results_[ElementProgram::kMaximumInstructions][kBlockElements];
};

Lane ElementRun::lane(const ElementOperand& operand) const {
  switch (operand.kind) {
    case ElementOperand::Kind::input:
      return lanes_[operand.index];
    case ElementOperand::Kind::result:
      return {.values = results_[operand.index]};
    case ElementOperand::Kind::constant:
      return {.values = &program_.constants[operand.index], .is_scalar = true};
  }
  HOLDFAST_ASSERT(false);
}

void ElementRun::load_inputs(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets,
                             std::int64_t first, std::int64_t count) {
  for (std::size_t i = 0; i < program_.input_count; ++i) {
    const std::int64_t stride = shape_.strides[i][shape_.axes - 1];
    const float* const from = inputs_[i] + offsets[i] + first * stride;
    lanes_[i] = {.values = from, .is_scalar = stride == 0};
    if (stride == 0 || stride == 1) continue;
    for (std::int64_t element = 0; element < count; ++element) gathered_[i][element] = from[element * stride];
    lanes_[i].values = gathered_[i];
  }
}

void ElementRun::run_block(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                           std::int64_t count, std::int64_t output_offset) {
  load_inputs(offsets, first, count);
  for (std::size_t i = 0; i < program_.instruction_count; ++i) {
    const ElementInstruction& instruction = program_.instructions[i];
    const RunInstruction run = {
        .operands = {lane(instruction.operands[0]), lane(instruction.operands[1]), lane(instruction.operands[2])},
        .count = count,
        .result = results_[i]};
    visit_function(instruction.function, run);
  }
  for (std::size_t i = 0; i < program_.output_count; ++i) {
    std::copy_n(results_[program_.outputs[i]], count, outputs_[i] + output_offset);
  }
}

void ElementRun::run() {
  constexpr std::size_t kInputs = ElementProgram::kMaximumInputs;
  const std::int64_t row = shape_.extents[shape_.axes - 1];
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < shape_.axes; ++axis) elements *= shape_.extents[axis];
  if (elements == 0) return;
  Odometer<kInputs> odometer(shape_.axes - 1, shape_.extents);
  std::array<const Axes*, kInputs> strides{};
  for (std::size_t i = 0; i < program_.input_count; ++i) strides[i] = &shape_.strides[i];
  std::int64_t output_offset = 0;
  do {
    for (std::int64_t first = 0; first < row; first += kBlockElements) {
      run_block(odometer.offsets, first, std::min(kBlockElements, row - first), output_offset + first);
    }
    output_offset += row;
  } while (odometer.next(strides));
}

}  // namespace

void CpuArrayKernels::elements(const ElementProgram& program, const ElementShape& shape,
                               std::span<const float* const> inputs, std::span<float* const> outputs) {
  ElementRun(program, shape, inputs, outputs).run();
}

void CpuArrayKernels::copy(const StridedCopy& copy, const float* from, float* to) {
  for (std::size_t axis = 0; axis < copy.axes; ++axis) {
    if (copy.extents[axis] == 0) return;
  }
  const std::size_t last = copy.axes - 1;
  Odometer<2> odometer(last, copy.extents);
  const std::int64_t from_stride = copy.from_strides[last];
  const std::int64_t to_stride = copy.to_strides[last];
  do {
    const float* const source = from + copy.from_offset + odometer.offsets[0];
    float* const target = to + copy.to_offset + odometer.offsets[1];
    if (from_stride == 1 && to_stride == 1) {
      std::copy_n(source, copy.extents[last], target);
    } else {
      for (std::int64_t i = 0; i < copy.extents[last]; ++i) target[i * to_stride] = source[i * from_stride];
    }
  } while (odometer.next({&copy.from_strides, &copy.to_strides}));
}

static float reduced_row(const RowReduction& reduction, const float* from, std::int64_t stride) {
  if (reduction.kind == ReductionKind::maximum) {
    float largest = from[0];
    for (std::int64_t r = 1; r < reduction.reduced; ++r) {
      const float value = from[r * stride];
      largest = value > largest || value != value ? value : largest;
    }
    return largest;
  }
  double sum = 0;
  for (std::int64_t r = 0; r < reduction.reduced; ++r) sum += from[r * stride];
  const double count = reduction.kind == ReductionKind::mean ? static_cast<double>(reduction.reduced) : 1.0;
  return static_cast<float>(sum / count);
}

void CpuArrayKernels::reduce(const RowReduction& reduction, const float* from, float* to) {
  for (std::int64_t outer = 0; outer < reduction.outer; ++outer) {
    const float* const block = from + outer * reduction.reduced * reduction.inner;
    for (std::int64_t inner = 0; inner < reduction.inner; ++inner) {
      *to++ = reduced_row(reduction, block + inner, reduction.inner);
    }
  }
}

}  // namespace holdfast::compute
