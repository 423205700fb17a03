#pragma once

// How parameters follow their gradients. An optimizer holds only options. What it remembers from step
// to step lies in its slots: arenas with the layout of the parameters, which start as zeros and belong
// to the training state.
//
// Optimizers are immutable; any thread may use the same one. An update treats each element on its own,
// with operations that IEEE 754 rounds in one way. So the bits do not depend on how an arena is cut
// into ranges. Where parameter, gradient and slots are zero, as in padding, they must stay zero.

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

// The base class of Adam, AdamW and SGD. Derive from it to train with a rule of your own on CPUs.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // For messages: "adam".
  virtual std::string name() const = 0;
  // The kind and all options as JSON, with numbers that read back exactly. A run refuses to resume with
  // another configuration. Equal optimizers must give equal texts, on every machine.
  virtual std::string configuration() const = 0;
  // An independent copy; a Trainer keeps one.
  virtual std::unique_ptr<Optimizer> clone() const = 0;

  // One name for each slot. Savepoints hold the slots under these names.
  virtual std::vector<std::string> slot_names() const = 0;

  // What is done to the gradients before update() gets them. Part of the configuration.
  virtual GradientClipping clipping() const { return {}; }

  // Updates one range of the arenas in one pass. `step` counts from 1, and `slots` are in the order of
  // slot_names(). Asserts that all ranges have one length; they must not overlap.
  virtual void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                      std::span<const std::span<float>> slots) const = 0;

  // The same for arrays on a device: queues the work and does not wait. The default throws
  // Error{unsupported}, so an optimizer of an application computes on CPUs only.
  virtual void update_on(compute::DeviceKernels& device, std::int64_t step, std::span<float> parameters,
                         std::span<const float> gradients, std::span<const std::span<float>> slots) const;

 protected:
  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
};

}  // namespace holdfast
