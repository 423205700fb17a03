#pragma once

// A step of an optimizer as data: which pass over memory it is, and the numbers of that step. The host and devices run
// the same pass, so an optimizer is written once.

#include <cstdint>
#include <span>
#include <variant>

#include "compute/array_kernels.h"
#include "compute/backend.h"
#include "compute/device_kernels.h"
#include "holdfast/core/array_passes.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The inputs of a program are the parameters, the gradients and the slots, in this order. Its outputs are the
// parameters and the slots.
struct UpdatePass {
  std::variant<compute::SgdStep, compute::AdamStep, compute::ElementProgram> step;
};

// Ranges of arenas, which all have one length.
struct UpdateArrays {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<const std::span<float>> slots;
  const ParameterArray* array = nullptr;  // where the ranges are one array, for an optimizer that needs whole ones
};

// Runs a pass on arrays in the host's memory.
void run_pass(const UpdatePass& pass, const UpdateArrays& arrays);

// Updates arrays in the memory of a back end. On the host the threads of `passes` share the work. On a device it is
// queued; an optimizer without a pass computes on copies in the host's memory there, and is waited for.
void update_arrays(compute::Backend& backend, const Optimizer& optimizer, std::int64_t step, const UpdateArrays& arrays,
                   const ArrayPasses& passes = pass_alone);

}  // namespace holdfast
