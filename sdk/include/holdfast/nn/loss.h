#pragma once

// What training makes small. A loss compares a model's outputs with the targets, gives one number a sample and the
// gradient of their sum. Losses are immutable and hold options only: any thread may use the same one.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "holdfast/compute/activation.h"
#include "holdfast/core/shape.h"

namespace holdfast {

namespace compute {
class DeviceKernels;
}

// Outputs and targets of one batch in a device's memory, and where the results go.
struct DeviceBatch {
  const float* outputs = nullptr;
  const float* targets = nullptr;
  std::int64_t samples = 0;          // at least 1
  std::int64_t output_elements = 0;  // of one sample
  float* sum = nullptr;
};

class Loss {
 public:
  virtual ~Loss() = default;

  // "sparse_categorical_crossentropy"
  virtual std::string name() const = 0;
  // Kind and options as JSON; the same text for the same loss, wherever it is made.
  virtual std::string configuration() const = 0;
  virtual std::unique_ptr<Loss> clone() const = 0;

  // The shape of one sample's target for the shape of one sample's output. Throws Error{invalid_argument} for outputs
  // that the loss cannot take.
  virtual Shape target_shape(const Shape& output) const = 0;

  // Throws Error{invalid_argument} where outputs of the activation `last` do not fit this loss, as for a cross-entropy
  // of logits after a softmax. `last` is empty where it is not known. Called when a Trainer is made; your own loss need
  // not override it.
  virtual void check_last_activation(std::optional<Activation>) const {}

  // `outputs` and `targets` hold `samples` rows, of the model's output and of target_shape() elements. Returns the sum
  // (not the mean) of the sample losses, added in the order of the samples in double. Writes to `gradient`, which is as
  // long as `outputs`,
  //     gradient[i] = scale * d(sum of the sample losses) / d outputs[i];
  // an empty `gradient` asks for the loss alone. Throws Error{invalid_argument} for spans that do not fit together and
  // for targets that no sample can have; `gradient` then holds anything.
  virtual float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                         float scale, std::span<float> gradient) const = 0;

  // The same of arrays on a device: queued, not waited for; *batch.sum gets the sum, `gradient` may be null. What this
  // does for a loss of yours is to throw Error{unsupported}: it computes on CPUs only.
  virtual void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                           float* gradient) const;

 protected:
  Loss() = default;
  Loss(const Loss&) = default;
  Loss& operator=(const Loss&) = default;
};

}  // namespace holdfast
