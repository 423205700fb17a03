#pragma once

// The mean squared error over the elements of a sample (keras.losses.MeanSquaredError), the usual loss
// of a regression:
//
//   loss = mean((output - target)^2),    gradient = 2 (output - target) / elements
//
//   Trainer trainer(replica, model, Adam{}, MeanSquaredError{});

#include "holdfast/nn/loss.h"

namespace holdfast {

// It has no options: MeanSquaredError{}.
class MeanSquaredError : public Loss {
 public:
  // What Loss promises.
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The shape of the output.
  Shape target_shape(const Shape& output) const override;
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  bool is_mean_of_elements() const override { return true; }
  bool describe_kernel(compute::LossShape& kernel) const override;
};

namespace losses {
using holdfast::MeanSquaredError;
}

}  // namespace holdfast
