#include "nn/model_plan.h"

#include <algorithm>

#include "compute/aligned_floats.h"

namespace holdfast {

static std::size_t round_up(std::int64_t elements) {
  constexpr std::size_t kLine = compute::AlignedFloats::kAlignmentBytes / sizeof(float);
  return (static_cast<std::size_t>(elements) + kLine - 1) / kLine * kLine;
}

// The offset of each stage's output.
static std::vector<std::size_t> place_outputs(const std::vector<BuiltModelStage>& stages, bool is_training,
                                              std::size_t& total_floats) {
  std::size_t largest = 0;
  for (const BuiltModelStage& stage : stages) largest = std::max(largest, round_up(stage.output_elements));
  std::vector<std::size_t> offsets;
  std::size_t end = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool overwrites = i > 0 && stages[i].traits.may_overwrite_input && !stages[i - 1].traits.needs_output;
    if (overwrites) {
      offsets.push_back(offsets.back());
    } else if (is_training) {
      offsets.push_back(end);
      end += round_up(stages[i].output_elements);
    } else {
      offsets.push_back(i > 0 && offsets.back() == 0 ? largest : 0);
    }
  }
  total_floats = is_training ? end : 2 * largest;
  return offsets;
}

ModelPlan::ModelPlan(const Sequential& model, compute::Backend& backend, const ModelStageBuilder::Options& options)
    : options_(options) {
  std::vector<BuiltModelStage> stages = ModelStageBuilder(model, backend, options).build();
  const std::vector<std::size_t> offsets = place_outputs(stages, options.is_training, activation_floats_);
  const auto trained =
      std::find_if(stages.begin(), stages.end(), [](const auto& s) { return s.traits.has_parameters; });
  first_trained_ = static_cast<std::size_t>(trained - stages.begin());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > first_trained_) gradient_floats_ = std::max(gradient_floats_, round_up(stages[i].input_elements));
    steps_.push_back({std::move(stages[i].stage), offsets[i]});
  }
}

const float* ModelPlan::input_of(std::size_t step, const float* features, const float* activations) const {
  return step == 0 ? features : activations + steps_[step - 1].output_offset;
}

const float* ModelPlan::forward(const ForwardPass& pass, const float* features, float* activations) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    pass.before_layer();
    steps_[i].stage->forward(pass, input_of(i, features, activations), activations + steps_[i].output_offset);
  }
  return input_of(steps_.size(), features, activations);
}

void ModelPlan::backward(const BackwardPass& pass, const float* features, float* activations,
                         const float* output_gradient, float* gradients_a, float* gradients_b) {
  for (std::size_t i = steps_.size(); i-- > first_trained_;) {
    pass.before_layer();
    float* const input_gradient = i == first_trained_ ? nullptr : gradients_a;
    steps_[i].stage->backward(pass, {.input = input_of(i, features, activations),
                                     .output = activations + steps_[i].output_offset,
                                     .output_gradient = output_gradient,
                                     .input_gradient = input_gradient});
    output_gradient = input_gradient;
    std::swap(gradients_a, gradients_b);
  }
}

}  // namespace holdfast
