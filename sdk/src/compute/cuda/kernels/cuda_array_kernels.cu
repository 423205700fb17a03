// The general kernels on CUDA devices: a thread computes an element of the output. An element program is interpreted by
// each thread; all threads take the same way through it. A reduction adds in the order of the elements, in double, as
// on the host.

#include "compute/arithmetic/element_functions.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

struct ElementArrays {
  const float* inputs[ElementProgram::kMaximumInputs];
  float* outputs[ElementProgram::kMaximumOutputs];
};

// The offset of element `index` of the output in an array with these strides.
__device__ std::int64_t strided_offset(std::int64_t index, std::size_t axes, const Axes& extents, const Axes& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = axes; axis-- > 0;) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

struct RunFunction {
  float a;
  float b;
  float c;
  float* result;

  template <ElementFunction kFunction>
  __device__ void run() const {
    *result = element<kFunction>(a, b, c);
  }
};

struct ElementPass {
  ElementProgram program;
  ElementShape shape;
  ElementArrays arrays;

  __device__ float operand(const ElementOperand& operand, const float* results, std::int64_t index) const {
    switch (operand.kind) {
      case ElementOperand::Kind::input:
        return arrays
            .inputs[operand.index][strided_offset(index, shape.axes, shape.extents, shape.strides[operand.index])];
      case ElementOperand::Kind::result:
        return results[operand.index];
      default:
        return program.constants[operand.index];
    }
  }

  template <int kCount>
  __device__ void run(std::size_t first) const {
    for (int i = 0; i < kCount; ++i) compute(static_cast<std::int64_t>(first) + i);
  }

  __device__ void compute(std::int64_t index) const {
    float results[ElementProgram::kMaximumInstructions];
    for (std::size_t i = 0; i < program.instruction_count; ++i) {
      const ElementInstruction& instruction = program.instructions[i];
      const std::size_t operands = instruction.function == ElementFunction::select ? 3
                                   : instruction.function >= ElementFunction::add  ? 2
                                                                                   : 1;
      float values[3] = {};
      for (std::size_t k = 0; k < operands; ++k) values[k] = operand(instruction.operands[k], results, index);
      visit_function(instruction.function, RunFunction{values[0], values[1], values[2], &results[i]});
    }
    for (std::size_t i = 0; i < program.output_count; ++i) arrays.outputs[i][index] = results[program.outputs[i]];
  }
};

struct CopyPass {
  StridedCopy copy;
  const float* from;
  float* to;

  template <int kCount>
  __device__ void run(std::size_t first) const {
    for (int i = 0; i < kCount; ++i) {
      const auto index = static_cast<std::int64_t>(first) + i;
      const std::int64_t source = strided_offset(index, copy.axes, copy.extents, copy.from_strides);
      const std::int64_t target = strided_offset(index, copy.axes, copy.extents, copy.to_strides);
      to[copy.to_offset + target] = from[copy.from_offset + source];
    }
  }
};

struct ReducePass {
  Reduction reduction;
  const float* from;
  float* to;

  template <int kCount>
  __device__ void run(std::size_t first) const {
    for (int i = 0; i < kCount; ++i) {
      const auto index = static_cast<std::int64_t>(first) + i;
      const std::int64_t outer = index / reduction.inner;
      const std::int64_t inner = index % reduction.inner;
      to[index] = row(from + outer * reduction.reduced * reduction.inner + inner);
    }
  }

  __device__ float row(const float* values) const {
    if (reduction.kind == ReductionKind::maximum) {
      float largest = values[0];
      for (std::int64_t r = 1; r < reduction.reduced; ++r) {
        const float value = values[r * reduction.inner];
        largest = value > largest || value != value ? value : largest;
      }
      return largest;
    }
    double sum = 0;
    for (std::int64_t r = 0; r < reduction.reduced; ++r) sum += values[r * reduction.inner];
    const double count = reduction.kind == ReductionKind::mean ? static_cast<double>(reduction.reduced) : 1.0;
    return static_cast<float>(sum / count);
  }
};

std::size_t element_count(std::size_t axes, const Axes& extents) {
  std::size_t count = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) count *= static_cast<std::size_t>(extents[axis]);
  return count;
}

}  // namespace

void CudaArrayKernels::elements(const ElementProgram& program, const ElementShape& shape,
                                std::span<const float* const> inputs, std::span<float* const> outputs) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  ElementPass pass = {program, shape, {}};
  for (std::size_t i = 0; i < inputs.size(); ++i) pass.arrays.inputs[i] = inputs[i];
  for (std::size_t i = 0; i < outputs.size(); ++i) pass.arrays.outputs[i] = outputs[i];
  run_pass("element program", pass, element_count(shape.axes, shape.extents), false, context_.stream());
}

void CudaArrayKernels::copy(const StridedCopy& copy, const float* from, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  run_pass("strided copy", CopyPass{copy, from, to}, element_count(copy.axes, copy.extents), false, context_.stream());
}

void CudaArrayKernels::reduce(const Reduction& reduction, const float* from, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const auto outputs = static_cast<std::size_t>(reduction.outer * reduction.inner);
  run_pass("reduction", ReducePass{reduction, from, to}, outputs, false, context_.stream());
}

}  // namespace holdfast::compute
