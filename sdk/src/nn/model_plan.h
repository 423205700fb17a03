#pragma once

// A model made ready for one number of samples: its stages, and where the arrays between them lie. The memory itself
// belongs to the caller, since plans for different numbers of samples never run at once.
//
// In training each stage's output is kept until the backward pass, except where the next stage may write over it. In
// inference two arrays take turns.

#include <optional>
#include <vector>

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
  // What the samples of the last forward() add to the sums from which buffers are updated.
  void contribute(float* contributions);

  // All of the backward pass, in its order. Each part but the last completes at least so many floats.
  std::vector<BackwardPart> backward_parts(std::size_t least_floats) const;

  bool is_first(const BackwardPart& part) const { return part.end_stage == steps_.size(); }

  struct BackwardArrays {
    const float* features = nullptr;
    float* activations = nullptr;
    const float* output_gradient = nullptr;
    float* gradients_a = nullptr;
    float* gradients_b = nullptr;
  };
  // After forward(), with the same features and activations. All parts take the same arrays.
  void backward(const BackwardPart& part, const BackwardPass& pass, const BackwardArrays& arrays);

 private:
  struct Step {
    std::unique_ptr<ModelStage> stage;
    std::size_t output_offset = 0;  // in activations
    // Its parameters, and those of all later steps, begin here; empty if it has no parameters.
    std::optional<std::size_t> parameters_begin{};
  };

  const float* input_of(std::size_t step, const float* features, const float* activations) const;

  const ModelStageBuilder::Options options_;
  const std::size_t parameter_floats_;
  std::vector<Step> steps_;
  std::size_t activation_floats_ = 0;
  std::size_t gradient_floats_ = 0;
  // The first step with parameters: nobody needs the gradient of what it takes.
  std::size_t first_trained_ = 0;
};

}  // namespace holdfast
