#pragma once

// Clips the gradients of a model: into an arena of its own, since the sum over replicas lies where others read it.

#include <memory>
#include <span>
#include <vector>

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/device_kernels.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/optim/gradient_clipping.h"

namespace holdfast {

class GradientClipper {
 public:
  // Allocates in `memory`, which outlives it, an arena and some room to add in. `arrays` are where the parameters lie
  // in their arena of so many floats; nothing between them is touched. `device` is null for the host's memory.
  GradientClipper(const GradientClipping& clipping, std::vector<compute::NormRange> arrays, std::size_t arena_floats,
                  MemorySpace& memory, compute::DeviceKernels* device);

  // The clipped gradients, valid until the next call. On a device it is queued, not waited for.
  std::span<const float> clip(std::span<const float> gradients);

 private:
  void clip_on_host(std::span<const float> gradients);

  const GradientClipping clipping_;
  const std::vector<compute::NormRange> ranges_;  // with a norm each
  compute::DeviceKernels* const device_;
  const std::size_t size_;
  const std::shared_ptr<float[]> clipped_;
  const std::shared_ptr<float[]> workspace_;  // of the device
  std::vector<double> chunk_sums_;            // of the host: as many as the longest range has
};

}  // namespace holdfast
