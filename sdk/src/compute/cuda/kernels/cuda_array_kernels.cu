// The general kernels on CUDA devices: a thread computes an element of the output, or four where arrays have no gaps.
// An element program is interpreted by each thread; all threads take the same way through it. A reduction adds in the
// host's order, in double. See docs/decisions/models.md.

#include <cmath>

#include "compute/arithmetic/element_functions.h"
#include "compute/arithmetic/lanes.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/runtime/cuda_elements.cuh"
#include "compute/result_places.h"

namespace holdfast::compute {
namespace {

// Passed by value, as parameters of a kernel: a table in memory of the device would have to be copied first.
struct ElementArrays {
  const float* inputs[ElementProgram::kMaximumInputs];
  float* outputs[ElementProgram::kMaximumOutputs];
};

// The offset of element `index` of the output in an array with these strides.
__device__ std::int64_t strided_offset(std::int64_t index, std::size_t axes, const Axes& extents, const Axes& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = axes; axis-- > 0;) {
    // From the last axis on, in which the elements of the output follow each other. A stride of 0 repeats an element,
    // which is a broadcast.
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

__device__ float operand_value(const ElementOperand& operand, const ElementProgram& program, const ElementShape& shape,
                               const ElementArrays& arrays, const float* results, std::int64_t index) {
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

__global__ void __launch_bounds__(kElementThreads)
    element_program_kernel(const __grid_constant__ ElementProgram program, const __grid_constant__ ElementShape shape,
                           const __grid_constant__ ElementArrays arrays, std::int64_t count) {
  const std::int64_t index = first_element<1>();
  if (index >= count) return;
  float results[ElementProgram::kMaximumInstructions];
  for (std::size_t i = 0; i < program.instruction_count; ++i) {
    const ElementInstruction& instruction = program.instructions[i];
    // An operand that a function does not have may be anything, and must not be read.
    const std::size_t operands = instruction.function == ElementFunction::select ? 3
                                 : instruction.function >= ElementFunction::add  ? 2
                                                                                 : 1;
    float values[3] = {};
#pragma unroll
    for (std::size_t k = 0; k < 3; ++k) {
      if (k < operands) values[k] = operand_value(instruction.operands[k], program, shape, arrays, results, index);
    }
    // All threads have the same instruction, so the branch does not divide a warp. A kernel for each program would have
    // to be compiled on the user's machine.
    visit_function(instruction.function, RunFunction{values[0], values[1], values[2], &results[i]});
  }
  for (std::size_t i = 0; i < program.output_count; ++i) arrays.outputs[i][index] = results[program.outputs[i]];
}

// A program over arrays without gaps, such as an update of an optimizer. Few places are alive at a time, so that those
// of many threads fit into the first-level cache. Operands and outputs name places.
struct FlatProgram {
  ElementProgram program;
  ResultPlaces places;
};

FlatProgram flat_program(const ElementProgram& program) {
  FlatProgram flat = {program, result_places(program)};
  for (std::size_t i = 0; i < program.instruction_count; ++i) {
    for (ElementOperand& operand : flat.program.instructions[i].operands) {
      if (operand.kind == ElementOperand::Kind::result) operand.index = flat.places.of[operand.index];
    }
  }
  for (std::size_t i = 0; i < program.output_count; ++i) flat.program.outputs[i] = flat.places.of[program.outputs[i]];
  return flat;
}

template <int kCount>
__device__ FloatVector<kCount> flat_operand(const ElementOperand& operand, const FlatProgram& flat,
                                            const ElementArrays& arrays, const FloatVector<kCount>* results,
                                            std::int64_t index) {
  if (operand.kind == ElementOperand::Kind::input) return load<kCount>(arrays.inputs[operand.index], index);
  if (operand.kind == ElementOperand::Kind::result) return results[operand.index];
  FloatVector<kCount> values;
#pragma unroll
  for (int i = 0; i < kCount; ++i) values.at[i] = flat.program.constants[operand.index];
  return values;
}

template <int kCount>
struct RunFlatFunction {
  const FloatVector<kCount>* operands;
  FloatVector<kCount>* result;

  template <ElementFunction kFunction>
  __device__ void run() const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result->at[i] = element<kFunction>(operands[0].at[i], operands[1].at[i], operands[2].at[i]);
    }
  }
};

template <int kCount>
__device__ void run_flat_program(const FlatProgram& flat, const ElementArrays& arrays, std::int64_t index) {
  FloatVector<kCount> results[ElementProgram::kMaximumInstructions];
  for (std::size_t i = 0; i < flat.program.instruction_count; ++i) {
    const ElementInstruction& instruction = flat.program.instructions[i];
    const std::size_t taken = instruction.function == ElementFunction::select ? 3
                              : instruction.function >= ElementFunction::add  ? 2
                                                                              : 1;
    FloatVector<kCount> operands[3] = {};
#pragma unroll
    for (std::size_t k = 0; k < 3; ++k) {
      if (k < taken) operands[k] = flat_operand<kCount>(instruction.operands[k], flat, arrays, results, index);
    }
    FloatVector<kCount> result = {};
    visit_function(instruction.function, RunFlatFunction<kCount>{operands, &result});
    // After the operands were read: a result may take the place of one of them.
    results[flat.places.of[i]] = result;
  }
  for (std::size_t i = 0; i < flat.program.output_count; ++i) {
    store(arrays.outputs[i], index, results[flat.program.outputs[i]]);
  }
}

template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    flat_program_kernel(const __grid_constant__ FlatProgram flat, const __grid_constant__ ElementArrays arrays,
                        std::int64_t count) {
  // The last thread of an array that no vector ends takes its elements one by one.
  const std::int64_t index = first_element<kCount>();
  if (index + kCount <= count) return run_flat_program<kCount>(flat, arrays, index);
  for (std::int64_t rest = index; rest < count; ++rest) run_flat_program<1>(flat, arrays, rest);
}

__global__ void __launch_bounds__(kElementThreads)
    strided_copy_kernel(const __grid_constant__ StridedCopy copy, const float* from, float* to, std::int64_t count) {
  const std::int64_t index = first_element<1>();
  if (index >= count) return;
  const std::int64_t source = strided_offset(index, copy.axes, copy.extents, copy.from_strides);
  const std::int64_t target = strided_offset(index, copy.axes, copy.extents, copy.to_strides);
  to[copy.to_offset + target] = from[copy.from_offset + source];
}

__device__ float reduced_row(const RowReduction& reduction, const float* values) {
  const double divisor = reduction.kind == ReductionKind::mean ? static_cast<double>(reduction.reduced) : 1.0;
  const bool is_largest = reduction.kind == ReductionKind::maximum;
  if (reduction.inner == 1) {
    // The last axis is reduced in 16 lanes, like on the host (docs/numerics.md).
    const auto value_of = [values](std::int64_t r) { return values[r]; };
    return is_largest ? largest_of_row(reduction.reduced, value_of)
                      : static_cast<float>(sum_of_row(reduction.reduced, value_of) / divisor);
  }
  if (is_largest) {
    float largest = -INFINITY;
    // A maximum has no rounding, so its order is of no consequence; only a NaN must not be lost.
    for (std::int64_t r = 0; r < reduction.reduced; ++r) largest = larger_or_nan(largest, values[r * reduction.inner]);
    return largest;
  }
  double sum = 0;
  // Other axes in the order of their elements. Neighbouring threads read neighbouring addresses here.
  for (std::int64_t r = 0; r < reduction.reduced; ++r) sum += values[r * reduction.inner];
  return static_cast<float>(sum / divisor);
}

__global__ void __launch_bounds__(kElementThreads)
    reduction_kernel(const __grid_constant__ RowReduction reduction, const float* from, float* to) {
  const std::int64_t index = first_element<1>();
  if (index >= reduction.outer * reduction.inner) return;
  // `from` is [outer, reduced, inner], and `to` is [outer, inner].
  const std::int64_t outer = index / reduction.inner;
  const std::int64_t inner = index % reduction.inner;
  to[index] = reduced_row(reduction, from + outer * reduction.reduced * reduction.inner + inner);
}

std::int64_t element_count(std::size_t axes, const Axes& extents) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) count *= extents[axis];
  return count;
}

// One thread for each of `count` elements; nothing for none.
template <class Kernel, class... Arguments>
void run_elements(const char* name, Kernel kernel, std::int64_t count, cudaStream_t stream,
                  const Arguments&... arguments) {
  // A launch that finds nothing to do would still take its time, and a grid of no blocks is an error.
  if (count == 0) return;
  launch(kernel, block_count(count, kElementThreads), kElementThreads, stream, arguments...);
  check_launch(name, {{"floats", count}});
}

// Whether all inputs are arrays like the outputs, without gaps and repetition.
bool is_flat(const ElementProgram& program, const ElementShape& shape) {
  bool is_flat = shape.axes == 1;
  for (std::size_t i = 0; i < program.input_count; ++i) is_flat = is_flat && shape.strides[i][0] == 1;
  return is_flat;
}

void run_flat(const FlatProgram& flat, const ElementArrays& arrays, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  bool in_vectors = true;
  for (const float* const input : arrays.inputs) in_vectors = in_vectors && is_aligned_for_vectors({input});
  for (const float* const output : arrays.outputs) in_vectors = in_vectors && is_aligned_for_vectors({output});
  if (in_vectors) {
    launch(flat_program_kernel<kVectorFloats>, block_count(count, kElementThreads * kVectorFloats), kElementThreads,
           stream, flat, arrays, count);
  } else {
    launch(flat_program_kernel<1>, block_count(count, kElementThreads), kElementThreads, stream, flat, arrays, count);
  }
  check_launch("element program", {{"floats", count}});
}

}  // namespace

void CudaArrayKernels::elements(const ElementProgram& program, const ElementShape& shape,
                                std::span<const float* const> inputs, std::span<float* const> outputs) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  ElementArrays arrays = {};
  // Places that the program does not have stay null, which counts as aligned.
  for (std::size_t i = 0; i < inputs.size(); ++i) arrays.inputs[i] = inputs[i];
  for (std::size_t i = 0; i < outputs.size(); ++i) arrays.outputs[i] = outputs[i];
  const std::int64_t count = element_count(shape.axes, shape.extents);
  if (is_flat(program, shape)) return run_flat(flat_program(program), arrays, count, context_.stream());
  run_elements("element program", element_program_kernel, count, context_.stream(), program, shape, arrays, count);
}

void CudaArrayKernels::copy(const StridedCopy& copy, const float* from, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = element_count(copy.axes, copy.extents);
  run_elements("strided copy", strided_copy_kernel, count, context_.stream(), copy, from, to, count);
}

void CudaArrayKernels::reduce(const RowReduction& reduction, const float* from, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = reduction.outer * reduction.inner;
  run_elements("reduction", reduction_kernel, count, context_.stream(), reduction, from, to);
}

}  // namespace holdfast::compute
