#pragma once

// What training minimizes. A loss compares the outputs of a model with the targets. It gives one number
// per sample, and the gradient of the sum of these numbers. Losses are immutable and hold only options;
// any thread may use the same one. Derive from Loss to train with a loss of your own on CPUs: implement
// the pure virtual functions of this class, and pass it to a Trainer. mean_squared_error.h is the
// shortest example.

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

// The outputs and targets of a batch in the memory of a device, and the place for their sum.
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

  // For messages: "sparse_categorical_crossentropy".
  virtual std::string name() const = 0;
  // The kind and all options as JSON. A run refuses to resume with another one. Equal losses must give
  // equal texts, on every machine.
  virtual std::string configuration() const = 0;
  // An independent copy; a Trainer keeps one.
  virtual std::unique_ptr<Loss> clone() const = 0;

  // The shape of the target of one sample, for that of its output. Throws Error{invalid_argument} for
  // outputs that the loss cannot take.
  virtual Shape target_shape(const Shape& output) const = 0;

  // Throws Error{invalid_argument} if outputs of the activation `last` do not fit this loss, such as
  // logits after a softmax. `last` is empty if it is not known. A Trainer calls this in its
  // constructor; overriding it is optional.
  virtual void check_last_activation(std::optional<Activation>) const {}

  // Returns the sum (not the mean) of the losses of `samples` rows, added in the order of the samples
  // in double. A row of `outputs` has the size of the model's output, a row of `targets` that of
  // target_shape(). Writes to `gradient`, which is as long as `outputs`,
  //
  //     gradient[i] = scale * d(sum of the sample losses) / d outputs[i];
  //
  // an empty `gradient` asks for the loss alone. Throws Error{invalid_argument} for spans whose sizes
  // do not fit together and for targets that no sample can have; the content of `gradient` is then
  // undefined.
  virtual float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                         float scale, std::span<float> gradient) const = 0;

  // The same for arrays on a device: queues the work and does not wait. *batch.sum receives the sum;
  // `gradient` may be null. The default throws Error{unsupported}, so a loss of an application computes
  // on CPUs only.
  virtual void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                           float* gradient) const;

 protected:
  Loss() = default;
  Loss(const Loss&) = default;
  Loss& operator=(const Loss&) = default;
};

}  // namespace holdfast
