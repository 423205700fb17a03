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
    : options_(options), parameter_floats_(model.parameters().float_count()) {
  std::vector<BuiltModelStage> stages = ModelStageBuilder(model, backend, options).build();
  const std::vector<std::size_t> offsets = place_outputs(stages, options.is_training, activation_floats_);
  const auto trained =
      std::find_if(stages.begin(), stages.end(), [](const auto& s) { return s.traits.has_parameters; });
  first_trained_ = static_cast<std::size_t>(trained - stages.begin());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > first_trained_) gradient_floats_ = std::max(gradient_floats_, round_up(stages[i].input_elements));
    Step& step = steps_.emplace_back(Step{.stage = std::move(stages[i].stage), .output_offset = offsets[i]});
    if (stages[i].traits.has_parameters) step.parameters_begin = stages[i].parameters_begin;
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

void ModelPlan::contribute(float* contributions) {
  for (const Step& step : steps_) step.stage->contribute(contributions);
}

std::vector<BackwardPart> ModelPlan::backward_parts(std::size_t least_floats) const {
  std::vector<BackwardPart> parts;
  std::size_t end_stage = steps_.size();
  std::size_t complete_from = parameter_floats_;  // before this part
  for (std::size_t i = steps_.size(); i-- > first_trained_;) {
    const std::optional<std::size_t> begin = steps_[i].parameters_begin;
    if (i == first_trained_ || !begin || complete_from - *begin < least_floats) continue;
    parts.push_back({.first_stage = i, .end_stage = end_stage, .gradients_begin = *begin});
    end_stage = i;
    complete_from = *begin;
  }
  parts.push_back({.first_stage = first_trained_, .end_stage = end_stage, .gradients_begin = 0});
  return parts;
}

// Two arrays take turns, counted from the last step.
void ModelPlan::backward(const BackwardPart& part, const BackwardPass& pass, const BackwardArrays& arrays) {
  const auto gradient_after = [&](std::size_t step) -> const float* {
    const std::size_t steps_after = steps_.size() - 1 - step;
    if (steps_after == 0) return arrays.output_gradient;
    return steps_after % 2 == 1 ? arrays.gradients_a : arrays.gradients_b;
  };
  const auto gradient_before = [&](std::size_t step) {
    if (step == first_trained_) return static_cast<float*>(nullptr);
    return (steps_.size() - 1 - step) % 2 == 0 ? arrays.gradients_a : arrays.gradients_b;
  };
  for (std::size_t i = part.end_stage; i-- > part.first_stage;) {
    pass.before_layer();
    steps_[i].stage->backward(pass, {.input = input_of(i, arrays.features, arrays.activations),
                                     .output = arrays.activations + steps_[i].output_offset,
                                     .output_gradient = gradient_after(i),
                                     .input_gradient = gradient_before(i)});
  }
}

}  // namespace holdfast
