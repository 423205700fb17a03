#include "nn/model_program.h"

#include <algorithm>
#include <limits>

#include "holdfast/base/error.h"
#include "nn/model_plan.h"

namespace holdfast {

static std::size_t count_contributions(const Sequential& model) {
  std::size_t count = 0;
  for (const SequentialLayer& layer : model.layers()) count += layer.layer->contribution_count(layer.input_shape);
  return count;
}

static std::size_t elements(const Shape& shape, std::int64_t samples) {
  return static_cast<std::size_t>(shape.with_batch(samples).element_count());
}

static std::uint64_t address_of(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array);
}

static std::vector<compute::DeviceKernels::Gap> padding_of(const ArenaLayout& layout) {
  std::vector<compute::DeviceKernels::Gap> gaps;
  std::size_t end = 0;  // of the entry before
  const auto add_gap = [&](std::size_t next) {
    if (next > end) gaps.push_back({.begin = end, .end = next});
  };
  for (const ArenaEntry& entry : layout.entries()) {
    add_gap(entry.offset);
    end = entry.offset + entry.element_count();
  }
  add_gap(layout.float_count());
  return gaps;
}

static constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

ModelProgram::ModelProgram(const Sequential& model, std::unique_ptr<compute::Backend> backend)
    : model_(model),
      backend_(std::move(backend)),
      contribution_count_(count_contributions(model)),
      padding_(padding_of(model.parameters())),
      training_activations_(backend_->memory()),
      inference_activations_(backend_->memory()),
      gradients_a_(backend_->memory()),
      gradients_b_(backend_->memory()) {}

ModelProgram::ModelProgram(const Sequential& model, int threads)
    : ModelProgram(model, compute::make_cpu_backend(threads)) {}

ModelProgram::~ModelProgram() = default;

const ModelProgram::NumberedPlan& ModelProgram::plan(std::int64_t samples, bool is_training) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const NumberedPlan& numbered) {
    return numbered.plan->samples() == samples && numbered.plan->is_training() == is_training;
  });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front();
  }
  const ModelStageBuilder::Options options = {.samples = samples, .is_training = is_training};
  auto plan = std::make_shared<ModelPlan>(model_, *backend_, options);
  (is_training ? training_activations_ : inference_activations_).grow_to(plan->activation_floats());
  if (is_training) {
    gradients_a_.grow_to(plan->gradient_floats());
    gradients_b_.grow_to(plan->gradient_floats());
  }
  if (plans_.size() == kPlansKept) plans_.pop_back();
  plans_.push_front({.plan = std::move(plan), .number = plans_made_++});
  return plans_.front();
}

std::vector<std::uint64_t> ModelProgram::prepare_training(std::int64_t samples, const Draws& draws) {
  const std::uint64_t number = plan(samples, true).number;
  backend_->set_draws(draws);
  return {number, address_of(training_activations_.data()), address_of(gradients_a_.data()),
          address_of(gradients_b_.data())};
}

std::vector<std::uint64_t> ModelProgram::prepare_inference(std::int64_t samples) {
  return {plan(samples, false).number, address_of(inference_activations_.data())};
}

std::span<const float> ModelProgram::forward_training(std::span<const float> features, std::int64_t samples,
                                                      std::span<const float> parameters, const Draws& draws) {
  if (samples > 0) prepare_training(samples, draws);
  return forward_training(features, samples, parameters);
}

std::span<const float> ModelProgram::forward_training(std::span<const float> features, std::int64_t samples,
                                                      std::span<const float> parameters) {
  HOLDFAST_ASSERT(samples >= 0 && features.size() == elements(model_.input_shape(), samples));
  HOLDFAST_ASSERT(parameters.size() == model_.parameters().float_count());
  last_plan_ = samples == 0 ? nullptr : plan(samples, true).plan;
  last_features_ = features;
  last_samples_ = samples;
  if (samples == 0) return {};
  const ForwardPass pass = {.parameters = parameters.data(), .before_layer = before_layer_};
  const float* const output = last_plan_->forward(pass, features.data(), training_activations_.data());
  return {output, elements(model_.output_shape(), samples)};
}

std::span<const float> ModelProgram::forward_inference(std::span<const float> features, std::int64_t samples,
                                                       std::span<const float> parameters,
                                                       std::span<const float> buffers) {
  HOLDFAST_ASSERT(samples >= 0 && features.size() == elements(model_.input_shape(), samples));
  HOLDFAST_ASSERT(parameters.size() == model_.parameters().float_count());
  HOLDFAST_ASSERT(buffers.size() == model_.buffers().float_count());
  if (samples == 0) return {};
  const ForwardPass pass = {.parameters = parameters.data(), .buffers = buffers.data(), .before_layer = before_layer_};
  const std::shared_ptr<ModelPlan> inference = plan(samples, false).plan;
  const float* const output = inference->forward(pass, features.data(), inference_activations_.data());
  return {output, elements(model_.output_shape(), samples)};
}

void ModelProgram::backward(std::span<const float> output_gradient, std::span<const float> parameters,
                            std::span<float> gradients, std::span<float> contributions) {
  HOLDFAST_ASSERT(last_samples_ >= 0 && output_gradient.size() == elements(model_.output_shape(), last_samples_));
  HOLDFAST_ASSERT(parameters.size() == model_.parameters().float_count() && gradients.size() == parameters.size());
  HOLDFAST_ASSERT(contributions.size() == contribution_count_);
  if (last_samples_ == 0) {
    backend_->memory().fill_zero(gradients);
    backend_->memory().fill_zero(contributions);
    return;
  }
  const BackwardArrays arrays = {.features = last_features_,
                                 .output_gradient = output_gradient,
                                 .parameters = parameters,
                                 .gradients = gradients,
                                 .contributions = contributions};
  for (const BackwardPart& part : last_plan_->backward_parts(kWhole)) run_backward(*last_plan_, part, arrays);
}

std::vector<BackwardPart> ModelProgram::backward_parts(std::int64_t samples, std::size_t least_floats) {
  return plan(samples, true).plan->backward_parts(least_floats);
}

void ModelProgram::backward_part(const BackwardPart& part, std::int64_t samples, const BackwardArrays& arrays) {
  run_backward(*plan(samples, true).plan, part, arrays);
}

void ModelProgram::run_backward(ModelPlan& plan, const BackwardPart& part, const BackwardArrays& arrays) {
  if (plan.is_first(part)) {
    clear_padding(arrays.gradients);
    plan.contribute(arrays.contributions.data());
  }
  const BackwardPass pass = {
      .parameters = arrays.parameters.data(), .gradients = arrays.gradients.data(), .before_layer = before_layer_};
  plan.backward(part, pass,
                {.features = arrays.features.data(),
                 .activations = training_activations_.data(),
                 .output_gradient = arrays.output_gradient.data(),
                 .gradients_a = gradients_a_.data(),
                 .gradients_b = gradients_b_.data()});
}

void ModelProgram::clear_padding(std::span<float> gradients) const {
  if (compute::DeviceKernels* const device = backend_->device_kernels()) {
    return device->clear(padding_, gradients.data());
  }
  for (const compute::DeviceKernels::Gap& gap : padding_) {
    std::fill_n(gradients.data() + gap.begin, gap.end - gap.begin, 0.0F);
  }
}

std::vector<std::span<float>> ModelProgram::buffers_of(const SequentialLayer& layer, std::span<float> buffers) const {
  std::vector<std::span<float>> views;
  const std::size_t count = layer.layer->buffers(layer.input_shape).size();
  for (std::size_t i = 0; i < count; ++i) views.push_back(model_.buffers().view(buffers, layer.first_buffer + i));
  return views;
}

void ModelProgram::update_buffers(std::span<const float> contributions, std::span<float> buffers) const {
  HOLDFAST_ASSERT(contributions.size() == contribution_count_);
  for (const SequentialLayer& layer : model_.layers()) {
    const std::size_t count = layer.layer->contribution_count(layer.input_shape);
    const std::vector<std::span<float>> views = buffers_of(layer, buffers);
    if (compute::DeviceKernels* const device = backend_->device_kernels()) {
      layer.layer->update_buffers_on(*device, contributions.data(), views);
    } else {
      layer.layer->update_buffers(contributions.first(count), views);
    }
    contributions = contributions.subspan(count);
  }
}

}  // namespace holdfast
