// An element program runs instruction by instruction over blocks of elements that stay in the first-level cache, so
// that each instruction is one simple loop. A block lies in one row of the innermost axis, in which an input advances
// by its stride or, if that is 0, is one number. See docs/decisions/models.md.

#include "compute/cpu/cpu_array_kernels.h"

#include <algorithm>
#include <array>

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/result_places.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

namespace {

// A kilobyte a block. A program has at most 32 of them, and most have a few, so they stay in the first-level cache.
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
        // Going back from the last index to the first is one step of the same kind, so nothing is multiplied out anew.
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

class ElementRun {
 public:
  ElementRun(const ElementProgram& program, const ElementShape& shape, std::span<const float* const> inputs,
             std::span<float* const> outputs)
      : program_(program), places_(result_places(program)), shape_(shape), inputs_(inputs), outputs_(outputs) {}

  void run();

 private:
  void run_block(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                 std::int64_t count, std::int64_t output_offset, bool is_last_of_row);
  void load_inputs(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                   std::int64_t count);
  ElementLane lane(const ElementOperand& operand) const;
  void prefetch(std::size_t input) const;
  void place_outputs();
  float* place_of(std::size_t instruction, std::int64_t output_offset);

  const VectorKernels& kernels_ = vector_kernels();
  const ElementProgram& program_;
  const ResultPlaces places_;
  const ElementShape& shape_;
  const std::span<const float* const> inputs_;
  const std::span<float* const> outputs_;
  std::array<ElementLane, ElementProgram::kMaximumInputs> lanes_{};
  // On the stack of the thread, so a run allocates nothing.
  float gathered_[ElementProgram::kMaximumInputs][kBlockElements];
  float results_[ElementProgram::kMaximumInstructions][kBlockElements];
  // By instruction: the output that its block is written to right away, or null.
  std::array<float*, ElementProgram::kMaximumInstructions> written_{};
  // By instruction: where its block of now lies.
  std::array<const float*, ElementProgram::kMaximumInstructions> blocks_{};
};

// An output may be an input. Its place is free as soon as no later instruction reads that input.
void ElementRun::place_outputs() {
  for (std::size_t output = 0; output < program_.output_count; ++output) {
    const std::size_t writer = program_.outputs[output];
    bool is_free = written_[writer] == nullptr;
    for (std::size_t later = writer + 1; later < program_.instruction_count; ++later) {
      const ElementInstruction& instruction = program_.instructions[later];
      for (std::size_t i = 0; i < operand_count(instruction.function); ++i) {
        const ElementOperand& operand = instruction.operands[i];
        if (operand.kind == ElementOperand::Kind::input && inputs_[operand.index] == outputs_[output]) is_free = false;
      }
    }
    if (is_free) written_[writer] = outputs_[output];
  }
}

float* ElementRun::place_of(std::size_t instruction, std::int64_t output_offset) {
  float* const place =
      written_[instruction] == nullptr ? results_[places_.of[instruction]] : written_[instruction] + output_offset;
  blocks_[instruction] = place;
  return place;
}

ElementLane ElementRun::lane(const ElementOperand& operand) const {
  switch (operand.kind) {
    case ElementOperand::Kind::input:
      return lanes_[operand.index];
    case ElementOperand::Kind::result:
      return {.values = blocks_[operand.index]};
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
    // The loops read whole vectors or one number. Other strides are gathered into a block first.
    if (stride == 0 || stride == 1) continue;
    for (std::int64_t element = 0; element < count; ++element) gathered_[i][element] = from[element * stride];
    lanes_[i].values = gathered_[i];
  }
}

// Asks for the next block of an input while this one is computed. A machine that guesses what is read next does not see
// far enough, because all inputs take turns.
void ElementRun::prefetch(std::size_t input) const {
  constexpr std::int64_t kLineFloats = 16;
  if (input >= program_.input_count || lanes_[input].is_scalar) return;
  for (std::int64_t line = 0; line < kBlockElements; line += kLineFloats) {
    // The next block may be shorter. Addresses after the end of an array are harmless.
    __builtin_prefetch(lanes_[input].values + kBlockElements + line);
  }
}

void ElementRun::run_block(const std::array<std::int64_t, ElementProgram::kMaximumInputs>& offsets, std::int64_t first,
                           std::int64_t count, std::int64_t output_offset, bool is_last_of_row) {
  load_inputs(offsets, first, count);
  for (std::size_t i = 0; i < program_.instruction_count; ++i) {
    const ElementInstruction& instruction = program_.instructions[i];
    const ElementLane operands[] = {lane(instruction.operands[0]), lane(instruction.operands[1]),
                                    lane(instruction.operands[2])};
    if (!is_last_of_row) prefetch(i);
    kernels_.run_instruction(instruction.function, operands, count, place_of(i, output_offset));
  }
  // An output whose place was not free gets its block now, after the last instruction that read the input there.
  for (std::size_t i = 0; i < program_.output_count; ++i) {
    const std::size_t writer = program_.outputs[i];
    if (written_[writer] != outputs_[i]) std::copy_n(blocks_[writer], count, outputs_[i] + output_offset);
  }
}

void ElementRun::run() {
  constexpr std::size_t kInputs = ElementProgram::kMaximumInputs;
  const std::int64_t row = shape_.extents[shape_.axes - 1];
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < shape_.axes; ++axis) elements *= shape_.extents[axis];
  // The loop below runs at least once.
  if (elements == 0) return;
  Odometer<kInputs> odometer(shape_.axes - 1, shape_.extents);
  std::array<const Axes*, kInputs> strides{};
  for (std::size_t i = 0; i < program_.input_count; ++i) strides[i] = &shape_.strides[i];
  place_outputs();
  std::int64_t output_offset = 0;
  do {
    for (std::int64_t first = 0; first < row; first += kBlockElements) {
      const std::int64_t count = std::min(kBlockElements, row - first);
      run_block(odometer.offsets, first, count, output_offset + first, first + count == row);
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
    // One memcpy for a row whose elements lie side by side in both arrays.
    if (from_stride == 1 && to_stride == 1) {
      std::copy_n(source, copy.extents[last], target);
    } else {
      for (std::int64_t i = 0; i < copy.extents[last]; ++i) target[i * to_stride] = source[i * from_stride];
    }
  } while (odometer.next({&copy.from_strides, &copy.to_strides}));
}

void CpuArrayKernels::reduce(const RowReduction& reduction, const float* from, float* to) {
  vector_kernels().reduce(reduction, from, to);
}

}  // namespace holdfast::compute
