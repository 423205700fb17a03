#pragma once

// What training minimizes. A loss compares the outputs of a model with the targets. It gives one number
// per sample, and the gradient of the sum of these numbers. Losses are immutable and hold only options;
// any thread may use the same one.
//
// A loss sees one sample at a time, or several as rows that it must treat one by one: a batch may be cut
// into shards anywhere. So a loss that compares the samples of a batch is not possible (value_loss.h).
//
// The short way to a loss of your own is a function of values (value_loss.h). A loss that functions of
// values cannot describe derives from Loss and computes rows of floats. On a device, such a loss is
// computed on the host, which the log says once: outputs and gradient are copied in each step.
//
//   class AbsoluteError final : public Loss {
//    public:
//     std::string name() const override { return "absolute_error"; }
//     std::string configuration() const override { return R"({"kind":"mine.absolute_error"})"; }
//     std::unique_ptr<Loss> clone() const override { return std::make_unique<AbsoluteError>(*this); }
//     Shape target_shape(const Shape& output) const override { return output; }
//     float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t, float scale,
//                    std::span<float> gradient) const override {
//       double sum = 0;
//       for (std::size_t i = 0; i < outputs.size(); ++i) {
//         sum += std::abs(outputs[i] - targets[i]);
//         if (!gradient.empty()) gradient[i] = outputs[i] < targets[i] ? -scale : scale;
//       }
//       return static_cast<float>(sum);
//     }
//   };

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "holdfast/compute/activation.h"
#include "holdfast/core/shape.h"

namespace holdfast {

namespace compute {
struct LossShape;
struct MetricShape;
}  // namespace compute

class ValueLoss;

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

  // Throws Error{invalid_argument} if outputs of the activation `last` do not fit this loss, such as logits after a
  // softmax. `last` is empty if it is not known. A Trainer calls this in its constructor; overriding it is optional.
  virtual void check_last_activation(std::optional<Activation>) const {}

  // Returns the sum (not the mean) of the losses of `samples` rows, added in the order of the samples
  // in double. A row of `outputs` has the size of the model's output, a row of `targets` that of
  // target_shape(). Writes to `gradient`, which is as long as `outputs`,
  //
  //     gradient[i] = scale * d(sum of the sample losses) / d outputs[i];
  //
  // an empty `gradient` asks for the loss alone. Throws Error{invalid_argument} for spans whose sizes do not fit
  // together and for targets that no sample can have; the content of `gradient` is then undefined.
  virtual float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                         float scale, std::span<float> gradient) const = 0;

  // How many axes of an output, from the first, are positions with a loss of their own. The loss of a
  // sample is then the mean over its positions, and evaluate() takes each position as a sample.
  virtual std::size_t position_axes(const Shape&) const { return 0; }
  // Whether the loss of a sample is a mean over its elements, each for itself. Then sample weights may have one value
  // for each index of any leading axes of the output.
  virtual bool is_mean_of_elements() const { return false; }

  // The target of samples or positions that have no loss. They count in the divisor of the mean loss neither. Targets
  // of the loss are single numbers then. Metrics count them all the same.
  virtual std::optional<float> ignored_target() const { return std::nullopt; }

  // How many positions, or samples without positions, are computed at a time, together with the product that ends the
  // model; 0: all of a shard. See CrossentropyOptions.
  virtual std::int64_t positions_at_once() const { return 0; }

  // The loss as a function of values, where it is one (value_loss.h); else null. It lives as long as this loss.
  virtual const ValueLoss* as_values() const { return nullptr; }
  // For Holdfast's own losses: describes the kernel of devices that computes this loss, and returns true.
  virtual bool describe_kernel(compute::LossShape&) const { return false; }

 protected:
  Loss() = default;
  Loss(const Loss&) = default;
  Loss& operator=(const Loss&) = default;
};

}  // namespace holdfast
