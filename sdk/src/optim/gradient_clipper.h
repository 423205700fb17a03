#pragma once

// Clips the gradients of a model into an arena of its own: the sum over replicas must stay, since other
// ranks read it.

#include <memory>
#include <span>
#include <vector>

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/device_kernels.h"
#include "holdfast/core/array_passes.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/optim/gradient_clipping.h"

namespace holdfast {

class GradientClipper {
 public:
  // Allocates an arena and a workspace in `memory`, which must outlive this object. `arrays` says where
  // the parameters lie in an arena of `arena_floats` floats; padding is left alone. `device` is null
  // for the memory of the host.
  GradientClipper(const GradientClipping& clipping, std::vector<compute::NormRange> arrays, std::size_t arena_floats,
                  MemorySpace& memory, compute::DeviceKernels* device);

  // Returns the clipped gradients, valid until the next call. On the host the threads of `passes` share
  // the work. On a device it is queued, not waited for.
  std::span<const float> clip(std::span<const float> gradients, const ArrayPasses& passes = pass_alone);

 private:
  void clip_on_host(std::span<const float> gradients, const ArrayPasses& passes);
  double sum_of_squares(std::span<const float> array, const ArrayPasses& passes);

  const GradientClipping clipping_;
  const std::vector<compute::NormRange> ranges_;  // one norm for each
  compute::DeviceKernels* const device_;
  const std::size_t size_;
  const std::shared_ptr<float[]> clipped_;
  const std::shared_ptr<float[]> workspace_;  // on a device only
  std::vector<double> chunk_sums_;            // on the host only: as many as the longest range has chunks
};

}  // namespace holdfast
