#pragma once

// How parameters follow their gradients. An optimizer holds options only; what it remembers from step to step lies in
// its slots, arenas with the layout of the parameters, which begin as zeros and belong to the training state.
//
// Optimizers are immutable: any thread may use the same one. An update works on each element by itself, with operations
// that IEEE 754 rounds in one way, so that the bits do not depend on how the arena is cut into ranges. Where parameter,
// gradient and slots are zero (padding) they stay zero.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/optim/gradient_clipping.h"

namespace holdfast {

namespace compute {
class DeviceKernels;
}

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // "adam"
  virtual std::string name() const = 0;
  // Kind and options as JSON, numbers so that they read back exactly; the same text for the same optimizer, wherever it
  // is made.
  virtual std::string configuration() const = 0;
  virtual std::unique_ptr<Optimizer> clone() const = 0;

  virtual std::vector<std::string> slot_names() const = 0;

  // What is done to the gradients before update() gets them. It is part of the configuration.
  virtual GradientClipping clipping() const { return {}; }

  // One pass over a range of the arenas; `step` counts from 1. `slots` are in the order of slot_names(). Asserts that
  // all ranges have one length; they must not overlap.
  virtual void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                      std::span<const std::span<float>> slots) const = 0;

  // The same of arrays on a device: queued, not waited for. What this does for an optimizer of yours is to throw
  // Error{unsupported}: it computes on CPUs only.
  virtual void update_on(compute::DeviceKernels& device, std::int64_t step, std::span<float> parameters,
                         std::span<const float> gradients, std::span<const std::span<float>> slots) const;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

}  // namespace holdfast
