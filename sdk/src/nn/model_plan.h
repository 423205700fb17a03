#pragma once

// A model made ready for one number of samples: its stages, and where the arrays between them lie. The memory itself
// belongs to the caller, since plans for different numbers of samples never run at once.
//
// In training each stage's output is kept until the backward pass, except where the next stage may write over it. In
// inference two arrays take turns.

#include <optional>

#include "nn/model_stage_builder.h"

namespace holdfast {

class ModelPlan {
 public:
  ModelPlan(const Sequential& model, compute::Backend& backend, const ModelStageBuilder::Options& options);

  std::int64_t samples() const { return options_.samples; }
  bool is_training() const { return options_.is_training; }
  // Floats that forward() and backward() need; each of the two gradient arrays has gradient_floats().
  std::size_t activation_floats() const { return activation_floats_; }
  std::size_t gradient_floats() const { return gradient_floats_; }

  // Returns the output: in `activations`, or `features` themselves when there is nothing to do.
  const float* forward(const ForwardPass& pass, const float* features, float* activations);
  // Of the last forward(), with the same features and activations.
  void backward(const BackwardPass& pass, const float* features, float* activations, const float* output_gradient,
                float* gradients_a, float* gradients_b);

 private:
  struct Step {
    std::unique_ptr<ModelStage> stage;
    std::size_t output_offset = 0;  // in activations
  };

  const float* input_of(std::size_t step, const float* features, const float* activations) const;

  const ModelStageBuilder::Options options_;
  std::vector<Step> steps_;
  std::size_t activation_floats_ = 0;
  std::size_t gradient_floats_ = 0;
  // The first step with parameters: nobody needs the gradient of what it takes.
  std::size_t first_trained_ = 0;
};

}  // namespace holdfast
