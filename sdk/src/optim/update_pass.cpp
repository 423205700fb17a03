// Adam and SGD have loops of their own, which are the fastest that a machine can run. All other rules run through the
// kernels of element programs. Either way, an element depends on its own numbers alone, so ranges may be cut anywhere.
// docs/decisions/optimizers.md

#include "optim/update_pass.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "compute/cpu/cpu_array_kernels.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using compute::ElementProgram;

// SGD has one slot, the velocity, and that only where it has a momentum.
float* velocity_of(const compute::SgdStep& step, const UpdateArrays& arrays) {
  HOLDFAST_ASSERT(arrays.slots.size() == (step.momentum > 0 ? 1U : 0U));
  return step.momentum > 0 ? arrays.slots[0].data() : nullptr;
}

// Outputs are written over the inputs, which ArrayKernels::elements() allows where the strides are the same.
void run_program(compute::ArrayKernels& kernels, const ElementProgram& program, const UpdateArrays& arrays) {
  HOLDFAST_ASSERT(program.input_count == arrays.slots.size() + 2 && program.output_count == arrays.slots.size() + 1);
  compute::ElementShape shape;
  shape.extents[0] = static_cast<std::int64_t>(arrays.parameters.size());
  std::array<const float*, ElementProgram::kMaximumInputs> inputs{arrays.parameters.data(), arrays.gradients.data()};
  std::array<float*, ElementProgram::kMaximumOutputs> outputs{arrays.parameters.data()};
  for (std::size_t slot = 0; slot < arrays.slots.size(); ++slot) {
    inputs[slot + 2] = outputs[slot + 1] = arrays.slots[slot].data();
  }
  for (std::size_t input = 0; input < program.input_count; ++input) shape.strides[input][0] = 1;
  kernels.elements(program, shape, std::span(inputs).first(program.input_count),
                   std::span(outputs).first(program.output_count));
}

// A kernel gets pointers and one length. A shorter array would be overrun without notice.
void require_one_length(const UpdateArrays& arrays) {
  const std::size_t size = arrays.parameters.size();
  HOLDFAST_ASSERT(arrays.gradients.size() == size);
  HOLDFAST_ASSERT(std::all_of(arrays.slots.begin(), arrays.slots.end(),
                              [&](const std::span<float>& slot) { return slot.size() == size; }));
}

void run_on_host(const compute::SgdStep& step, const UpdateArrays& arrays) {
  compute::vector_kernels().sgd(step, static_cast<std::int64_t>(arrays.parameters.size()), arrays.gradients.data(),
                                arrays.parameters.data(), velocity_of(step, arrays));
}

void run_on_host(const compute::AdamStep& step, const UpdateArrays& arrays) {
  HOLDFAST_ASSERT(arrays.slots.size() == 2);
  compute::vector_kernels().adam(step, static_cast<std::int64_t>(arrays.parameters.size()), arrays.gradients.data(),
                                 arrays.parameters.data(), arrays.slots[0].data(), arrays.slots[1].data());
}

void run_on_host(const ElementProgram& program, const UpdateArrays& arrays) {
  compute::CpuArrayKernels kernels;
  run_program(kernels, program, arrays);
}

// A queue() returns before the device has done the work. The arrays must not be freed before that.
void queue(compute::Backend& backend, const compute::SgdStep& step, const UpdateArrays& arrays) {
  backend.device_kernels()->sgd(step, arrays.parameters.size(), arrays.parameters.data(), arrays.gradients.data(),
                                velocity_of(step, arrays));
}

void queue(compute::Backend& backend, const compute::AdamStep& step, const UpdateArrays& arrays) {
  HOLDFAST_ASSERT(arrays.slots.size() == 2);
  backend.device_kernels()->adam(step, arrays.parameters.size(), arrays.parameters.data(), arrays.gradients.data(),
                                 arrays.slots[0].data(), arrays.slots[1].data());
}

void queue(compute::Backend& backend, const ElementProgram& program, const UpdateArrays& arrays) {
  run_program(backend.array_kernels(), program, arrays);
}

void update_whole(const Optimizer& optimizer, std::int64_t step, const UpdateArrays& arrays) {
  if (arrays.array == nullptr) return optimizer.update(step, arrays.parameters, arrays.gradients, arrays.slots);
  optimizer.update_array(*arrays.array, step, arrays.parameters, arrays.gradients, arrays.slots);
}

// For a rule that only update() knows.
void update_copies(MemorySpace& memory, const Optimizer& optimizer, std::int64_t step, const UpdateArrays& arrays) {
  const auto fetched = [&](std::span<const float> array) {
    std::vector<float> copy(array.size());
    memory.copy_to_host(array, copy);
    return copy;
  };
  std::vector<float> parameters = fetched(arrays.parameters);
  const std::vector<float> gradients = fetched(arrays.gradients);
  std::vector<std::vector<float>> slots;
  for (const std::span<float>& slot : arrays.slots) slots.push_back(fetched(slot));
  const std::vector<std::span<float>> slot_spans(slots.begin(), slots.end());
  update_whole(optimizer, step, {parameters, gradients, slot_spans, arrays.array});
  memory.copy_from_host(parameters, arrays.parameters);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) memory.copy_from_host(slots[slot], arrays.slots[slot]);
}

// Memory of its own would be allocated in each step.
constexpr std::size_t kMostSharedSlots = 8;

void update_on_host(const Optimizer& optimizer, std::int64_t step, const UpdateArrays& arrays,
                    const ArrayPasses& passes) {
  if (arrays.slots.size() > kMostSharedSlots || arrays.array != nullptr) return update_whole(optimizer, step, arrays);
  const auto update_range = [&](std::size_t begin, std::size_t end) {
    std::array<std::span<float>, kMostSharedSlots> slots;
    std::transform(arrays.slots.begin(), arrays.slots.end(), slots.begin(),
                   [&](std::span<float> slot) { return slot.subspan(begin, end - begin); });
    optimizer.update(step, arrays.parameters.subspan(begin, end - begin), arrays.gradients.subspan(begin, end - begin),
                     std::span(slots).first(arrays.slots.size()));
  };
  // An element of the parameters and of each slot is read and written, and one of the gradients is read.
  passes(arrays.parameters.size(), 3 + 2 * arrays.slots.size(), std::ref(update_range));
}

}  // namespace

void run_pass(const UpdatePass& pass, const UpdateArrays& arrays) {
  require_one_length(arrays);
  std::visit([&](const auto& step) { run_on_host(step, arrays); }, pass.step);
}

void update_arrays(compute::Backend& backend, const Optimizer& optimizer, std::int64_t step, const UpdateArrays& arrays,
                   const ArrayPasses& passes) {
  if (backend.device_kernels() == nullptr) return update_on_host(optimizer, step, arrays, passes);
  // Without a pass, the rule is a function on the host alone: the arrays travel there and back.
  const std::shared_ptr<const UpdatePass> pass = optimizer.pass(step);
  if (pass == nullptr) return update_copies(backend.memory(), optimizer, step, arrays);
  require_one_length(arrays);
  std::visit([&](const auto& one) { queue(backend, one, arrays); }, pass->step);
}

}  // namespace holdfast
