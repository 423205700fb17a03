// A program owns what a pass needs besides the numbers: the plans, an arena for training and one for inference. All
// plans of an arena share it, since one of them runs at a time. Addresses are collected for each pass, because an arena
// moves when a larger plan makes it grow. docs/decisions/plans.md

#include "nn/program/model_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "compute/arithmetic/optimizers.h"
#include "holdfast/base/error.h"
#include "nn/model/description.h"
#include "nn/operations/product_operation.h"

namespace holdfast {

static std::size_t elements(const Shape& shape, std::int64_t samples) {
  return static_cast<std::size_t>(samples * shape.element_count());
}

static std::uint64_t address_of(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array);
}

// What no pass writes of an arena of gradients: padding, and parameters that no output depends on.
static std::vector<compute::DeviceKernels::Gap> unwritten_gradients(const ArenaLayout& layout, const Graph& graph) {
  std::vector<compute::DeviceKernels::Gap> gaps;
  std::size_t end = 0;  // of the written entry before
  const auto add_gap = [&](std::size_t next) {
    if (next > end) gaps.push_back({.begin = end, .end = next});
  };
  // Entries come in the order of their offsets, so a gap ends where the next written entry begins.
  for (std::size_t index = 0; index < layout.entries().size(); ++index) {
    const ArenaEntry& entry = layout.entries()[index];
    if (graph.parameter_gradients[index] == kNoArray) continue;
    add_gap(entry.offset);
    end = entry.offset + entry.element_count();
  }
  add_gap(layout.float_count());
  return gaps;
}

// See gradients_of_one_product(). Where a parameter is used twice, an addition makes its gradient.
static std::vector<std::size_t> find_gradients_of_one_product(const ArenaLayout& layout, const Graph& graph) {
  std::set<ArrayId> read(graph.outputs.begin(), graph.outputs.end());
  for (const GraphOperation& operation : graph.operations) {
    for (const ArrayId input : operation.inputs) {
      if (input != kNoArray) read.insert(graph.memory_of(input));
    }
  }
  std::vector<std::size_t> found;
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    const ArrayId gradient = graph.parameter_gradients[entry];
    if (gradient == kNoArray || graph.arrays[gradient].source != GraphArray::Source::operation) continue;
    const GraphOperation& maker = graph.operations[graph.arrays[gradient].index];
    const bool is_of_kernel =
        dynamic_cast<const ProductBackward<compute::DenseOperation>*>(maker.operation.get()) != nullptr &&
        maker.outputs.at(1) == gradient;
    if (!is_of_kernel || read.contains(gradient)) continue;
    // A row for each sample: with positions, rows of shards would differ by more than one.
    const ValueSpec& input = graph.spec(maker.inputs.front());
    if (input.has_samples && input.shape.rank() == 1) found.push_back(layout.entries()[entry].offset);
  }
  return found;
}

// No arena has so many floats, so the backward pass is a single part.
static constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

ModelProgram::ModelProgram(const Model& model, std::unique_ptr<compute::Backend> backend)
    : model_(model),
      backend_(std::move(backend)),
      contribution_count_(model.description()->contribution_count()),
      unwritten_(unwritten_gradients(model.parameters(), model.description()->training)),
      of_one_product_(find_gradients_of_one_product(model.parameters(), model.description()->training)),
      training_arena_(backend_->memory()),
      inference_arena_(backend_->memory()) {}

ModelProgram::ModelProgram(const Model& model, int threads) : ModelProgram(model, compute::make_cpu_backend(threads)) {}

ModelProgram::~ModelProgram() = default;

void ModelProgram::replace_model(const Model& model) {
  // Work that was queued may still use the plans.
  backend_->memory().wait();
  model_ = model;
  contribution_count_ = model.description()->contribution_count();
  unwritten_ = unwritten_gradients(model.parameters(), model.description()->training);
  of_one_product_ = find_gradients_of_one_product(model.parameters(), model.description()->training);
  if (cut_) leave_out_last_product();
  // Plans of the new model get numbers that no earlier one had.
  plans_.clear();
  last_plan_ = nullptr;
}

void ModelProgram::leave_out_last_product() {
  const ModelDescription& model = *model_.description();
  cut_ = Cut{.training = without_last_product(model.training), .evaluation = without_last_product(model.inference)};
  // The gradients of the product that is left out are written by others.
  of_one_product_ = find_gradients_of_one_product(model_.parameters(), cut_->training.graph);
  // A plan is found by the address of its graph.
  plans_.clear();
}

const LastProduct& ModelProgram::last_product(bool has_gradients) const {
  HOLDFAST_ASSERT(cut_.has_value());
  return has_gradients ? cut_->training.product : cut_->evaluation.product;
}

const Graph& ModelProgram::training_graph() const {
  return cut_ ? cut_->training.graph : model_.description()->training;
}

std::string ModelProgram::arithmetic() const {
  std::vector<std::string> texts = {backend_->description()};
  for (const GraphOperation& operation : evaluation_graph().operations) {
    std::string text = operation.operation->arithmetic(*backend_);
    if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

const Graph& ModelProgram::evaluation_graph() const {
  return cut_ ? cut_->evaluation.graph : model_.description()->inference;
}

const ModelProgram::NumberedPlan& ModelProgram::plan(std::int64_t samples, const Graph& graph) {
  // Passes of training and of inference have different kernels, so a plan serves only one kind.
  const bool is_training = &graph == &training_graph();
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const NumberedPlan& numbered) {
    return numbered.plan->samples() == samples && numbered.graph == &graph;
  });
  if (found != plans_.end()) {
    // The list is in the order of use, so that the plan which is dropped is the one that was not used for longest.
    plans_.splice(plans_.begin(), plans_, found);
    return plans_.front();
  }
  auto plan = std::make_shared<ModelPlan>(graph, model_.description()->memory_options(samples), *backend_, is_training);
  // An arena never shrinks, so it fits older plans too. Sizes are multiples of 64 bytes, so the division is exact.
  (is_training ? training_arena_ : inference_arena_).grow_to(plan->arena_bytes() / sizeof(float));
  // A forward pass holds its plan by a pointer of its own, so a plan that is dropped here can still run backward.
  if (plans_.size() == kPlansKept) plans_.pop_back();
  // Another plan may get the address of one that was dropped. Its number stays unique, so a device does not repeat work
  // that it recorded for the old plan.
  plans_.push_front({.plan = std::move(plan), .graph = &graph, .number = plans_made_++});
  return plans_.front();
}

ModelProgram::RepeatKey ModelProgram::prepare_training(std::int64_t samples, const RandomKey& draws) {
  // Recorded work holds addresses, so the address of the arena belongs to the key: the arena moves when it grows.
  const std::uint64_t number = plan(samples, training_graph()).number;
  backend_->set_draws(draws);
  return {number, address_of(training_arena_.data())};
}

ModelProgram::RepeatKey ModelProgram::prepare_inference(std::int64_t samples) {
  return {plan(samples, model_.description()->inference).number, address_of(inference_arena_.data())};
}

ModelProgram::RepeatKey ModelProgram::prepare_evaluation(std::int64_t samples) {
  return {plan(samples, evaluation_graph()).number, address_of(inference_arena_.data())};
}

// A plan writes to none of the arrays that are constant here.
static std::byte* bytes_of(std::span<const float> floats) {
  return reinterpret_cast<std::byte*>(const_cast<float*>(floats.data()));
}

ModelPlan::Bases& ModelProgram::bases(const compute::GrowingFloats& arena, std::span<const float> parameters,
                                      const Inputs& inputs) {
  HOLDFAST_ASSERT(inputs.size() == model_.inputs().size());
  HOLDFAST_ASSERT(parameters.size() == model_.parameters().float_count());
  // The places are those of Base. What a pass does not use stays null, so that a wrong use of it fails at once.
  bases_.assign(static_cast<std::size_t>(Base::first_external), nullptr);
  bases_[static_cast<std::size_t>(Base::arena)] = reinterpret_cast<std::byte*>(arena.data());
  bases_[static_cast<std::size_t>(Base::parameters)] = bytes_of(parameters);
  // Training reads only buffers that stand still, such as those of Normalization. run_inference() puts its own buffers
  // here.
  bases_[static_cast<std::size_t>(Base::buffers)] = bytes_of(training_buffers_);
  for (const std::byte* const input : inputs) bases_.push_back(const_cast<std::byte*>(input));
  return bases_;
}

const ModelProgram::Outputs& ModelProgram::run_training(const Inputs& inputs, std::int64_t samples,
                                                        std::span<const float> parameters) {
  // backward() needs the same plan and inputs again.
  last_plan_ = plan(samples, training_graph()).plan;
  last_inputs_ = inputs;
  last_samples_ = samples;
  const ModelPlan::Bases& addresses = bases(training_arena_, parameters, inputs);
  last_plan_->forward(addresses, before_);
  return outputs_of(*last_plan_, addresses);
}

const ModelProgram::Outputs& ModelProgram::run_inference(const Inputs& inputs, std::int64_t samples,
                                                         std::span<const float> parameters,
                                                         std::span<const float> buffers) {
  return run_without_gradients(model_.description()->inference, inputs, samples, parameters, buffers);
}

const ModelProgram::Outputs& ModelProgram::run_evaluation(const Inputs& inputs, std::int64_t samples,
                                                          std::span<const float> parameters,
                                                          std::span<const float> buffers) {
  return run_without_gradients(evaluation_graph(), inputs, samples, parameters, buffers);
}

const ModelProgram::Outputs& ModelProgram::run_without_gradients(const Graph& graph, const Inputs& inputs,
                                                                 std::int64_t samples,
                                                                 std::span<const float> parameters,
                                                                 std::span<const float> buffers) {
  HOLDFAST_ASSERT(buffers.size() == model_.buffers().float_count());
  const std::shared_ptr<ModelPlan> inference = plan(samples, graph).plan;
  ModelPlan::Bases& addresses = bases(inference_arena_, parameters, inputs);
  // Inference reads moving averages, and these are the ones that it was given.
  addresses[static_cast<std::size_t>(Base::buffers)] = bytes_of(buffers);
  inference->forward(addresses, before_);
  return outputs_of(*inference, addresses);
}

const ModelProgram::Outputs& ModelProgram::outputs_of(const ModelPlan& plan, const ModelPlan::Bases& addresses) {
  outputs_.clear();
  for (std::size_t output = 0; output < plan.output_count(); ++output) {
    outputs_.push_back(plan.output(output, addresses));
  }
  return outputs_;
}

std::span<const float> ModelProgram::only_output(const Outputs& outputs, std::int64_t samples) const {
  return {reinterpret_cast<const float*>(outputs.front()), elements(model_.output_shape(), samples)};
}

std::span<const float> ModelProgram::forward_training(std::span<const float> features, std::int64_t samples,
                                                      std::span<const float> parameters, const RandomKey& draws) {
  if (samples > 0) prepare_training(samples, draws);
  return forward_training(features, samples, parameters);
}

std::span<const float> ModelProgram::forward_training(std::span<const float> features, std::int64_t samples,
                                                      std::span<const float> parameters) {
  HOLDFAST_ASSERT(samples >= 0 && features.size() == elements(model_.input_shape(), samples));
  last_samples_ = samples;
  // A shard without samples has no plan. backward() then writes zeros.
  last_plan_ = nullptr;
  if (samples == 0) return {};
  return only_output(run_training({bytes_of(features)}, samples, parameters), samples);
}

std::span<const float> ModelProgram::forward_inference(std::span<const float> features, std::int64_t samples,
                                                       std::span<const float> parameters,
                                                       std::span<const float> buffers) {
  HOLDFAST_ASSERT(samples >= 0 && features.size() == elements(model_.input_shape(), samples));
  if (samples == 0) return {};
  return only_output(run_inference({bytes_of(features)}, samples, parameters, buffers), samples);
}

void ModelProgram::backward(std::span<const float> output_gradient, std::span<const float> parameters,
                            std::span<float> gradients, std::span<float> contributions) {
  HOLDFAST_ASSERT(last_samples_ >= 0 && output_gradient.size() == elements(model_.output_shape(), last_samples_));
  HOLDFAST_ASSERT(gradients.size() == model_.parameters().float_count());
  HOLDFAST_ASSERT(contributions.size() == contribution_count_);
  if (last_samples_ == 0) {
    // Replicas add up all shards, and a shard without samples must add zeros.
    backend_->memory().fill_zero(gradients);
    backend_->memory().fill_zero(contributions);
    return;
  }
  const BackwardArrays arrays = {.inputs = last_inputs_,
                                 .output_gradients = {output_gradient.data()},
                                 .parameters = parameters,
                                 .gradients = gradients,
                                 .contributions = contributions};
  for (const BackwardPart& part : last_plan_->backward_parts(kWhole)) run_backward(*last_plan_, part, arrays);
}

const std::vector<BackwardPart>& ModelProgram::backward_parts(std::int64_t samples, std::size_t least_floats) {
  return plan(samples, training_graph()).plan->backward_parts(least_floats);
}

void ModelProgram::backward_part(const BackwardPart& part, std::int64_t samples, const BackwardArrays& arrays) {
  run_backward(*plan(samples, training_graph()).plan, part, arrays);
}

void ModelProgram::run_backward(ModelPlan& plan, const BackwardPart& part, const BackwardArrays& arrays) {
  // Sums over the whole arena include its padding, which must thus be zero. No part writes there, so once is enough.
  if (plan.is_first(part)) clear_unwritten(arrays.gradients);
  ModelPlan::Bases& addresses = bases(training_arena_, arrays.parameters, arrays.inputs);
  addresses[static_cast<std::size_t>(Base::gradients)] = bytes_of(arrays.gradients);
  addresses[static_cast<std::size_t>(Base::contributions)] = bytes_of(arrays.contributions);
  // The plan only reads them, as it reads the inputs.
  for (const float* const gradient : arrays.output_gradients) {
    addresses.push_back(reinterpret_cast<std::byte*>(const_cast<float*>(gradient)));
  }
  plan.backward(part, addresses, before_);
}

void ModelProgram::clear_unwritten(std::span<float> gradients) const {
  // A device has one kernel for all gaps, because each launch costs time.
  if (compute::DeviceKernels* const device = backend_->device_kernels()) {
    return device->clear(unwritten_, gradients.data());
  }
  for (const compute::DeviceKernels::Gap& gap : unwritten_) {
    std::fill_n(gradients.data() + gap.begin, gap.end - gap.begin, 0.0F);
  }
}

void ModelProgram::update_buffers(std::span<const float> contributions, std::span<float> buffers) const {
  HOLDFAST_ASSERT(contributions.size() == contribution_count_);
  const Graph& graph = model_.description()->training;
  for (const BufferUpdate& update : graph.updates) {
    const float* sums = contributions.data() + update.offset;
    // The number of rows comes after all sums.
    const float* const count = sums + graph.spec(update.sums).shape.element_count() - 1;
    for (const std::size_t entry : update.buffers) {
      const std::span<float> moving = model_.buffers().view(buffers, entry);
      update_moving(sums, count, update.momentum, moving);
      // The sums of the next buffer follow.
      sums += moving.size();
    }
  }
}

void ModelProgram::update_moving(const float* sums, const float* count, float momentum, std::span<float> moving) const {
  if (compute::DeviceKernels* const device = backend_->device_kernels()) {
    return device->update_moving(sums, count, moving.size(), momentum, moving.data());
  }
  // A batch without rows leaves the averages as they are: 0 / 0 would make NaN of them. A device checks the count
  // itself, since the host cannot read its memory.
  if (*count == 0) return;
  for (float& value : moving) value = compute::moving_average(value, momentum, *sums++, *count);
}

}  // namespace holdfast
