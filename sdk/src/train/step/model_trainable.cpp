// On a device, a shard's passes are recorded and repeated under a key. Whatever the passes depend on must be in the
// key, or a recording would go on with old sizes and addresses. The backward pass is queued in parts, so that gradients
// which are complete can go to other ranks meanwhile. docs/decisions/devices.md

#include "train/step/model_trainable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <typeinfo>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "optim/clipping_options.h"
#include "train/context/configuration_json.h"

namespace holdfast {
namespace {

void append_spans(const ArenaLayout& layout, std::span<float> arena, const std::string& prefix, StateKind kind,
                  std::vector<StateSpan>& spans) {
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    spans.push_back(
        {prefix + layout.entries()[entry].name, kind, layout.entries()[entry].shape, layout.view(arena, entry)});
  }
}

std::uint64_t address_of(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array);
}

const std::byte* bytes_of(std::span<const float> floats) {
  return reinterpret_cast<const std::byte*>(floats.data());
}

std::size_t elements(const Shape& shape, std::int64_t samples) {
  return static_cast<std::size_t>(shape.with_batch(samples).element_count());
}

}  // namespace

ModelTrainable::ModelTrainable(const Model& model, const Optimizer& optimizer, const Loss& loss,
                               std::vector<std::shared_ptr<const Metric>> metrics)
    : model_(model),
      has_given_weights_(model.has_weights()),
      optimizer_(optimizer.clone()),
      loss_(loss.clone()),
      metrics_(std::move(metrics)) {
  if (model.inputs().size() != 1 || model.outputs().size() != 1) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a Trainer takes models with one input and one output, but this one has {} and {}; join them "
                    "in the model, with Concatenate for example",
                    model.inputs().size(), model.outputs().size()));
  }
  loss_->target_shape(model_.output_shape());  // throws if the two do not fit
  loss_->check_last_activation(model_.output_activation());
  check_clipping(optimizer_->name(), optimizer_->clipping());
}

std::string ModelTrainable::configuration() const {
  const auto json_of = [](const std::string& role, const std::string& name, const auto& part) {
    return json_given_by(name_of_class(role, name, typeid(part)), "configuration()", part.configuration());
  };
  nlohmann::json metrics = nlohmann::json::array();
  for (const auto& metric : metrics_) metrics.push_back(json_of("metric", metric->name(), *metric));
  return nlohmann::json{{"optimizer", json_of("optimizer", optimizer_->name(), *optimizer_)},
                        {"loss", json_of("loss", loss_->name(), *loss_)},
                        {"metrics", metrics},
                        {"initial_weights", has_given_weights_ ? "given" : "drawn"}}
      .dump();
}

std::string ModelTrainable::arithmetic() const {
  HOLDFAST_ASSERT(!workers_.empty());
  return workers_.front().program->arithmetic();
}

void ModelTrainable::prepare(const Workers& workers) {
  // Earlier workers are kept: they have made their operations for the shapes that they met.
  while (static_cast<int>(workers_.size()) < workers.count) {
    auto backend = workers.device == "cpu" ? compute::make_cpu_backend(workers.threads_per_shard)
                                           : compute::make_cuda_backend(workers.device, workers.precision);
    MemorySpace& memory = backend->memory();
    const bool is_device = backend->device_kernels() != nullptr;
    WorkerState state{std::make_unique<ModelProgram>(model_, std::move(backend)), compute::GrowingFloats(memory)};
    if (is_device) {
      state.device_shard =
          DeviceShard{compute::GrowingFloats(memory), compute::GrowingFloats(memory), compute::GrowingFloats(memory)};
    }
    workers_.push_back(std::move(state));
  }
  if (!parameters_.floats) allocate();
  for (WorkerState& worker : workers_) worker.program->read_buffers_from(buffers_.span());
}

void ModelTrainable::allocate() {
  const auto arena = [this](std::size_t floats) { return Arena{memory().allocate(floats), floats}; };
  parameters_ = arena(model_.parameters().float_count());
  buffers_ = arena(model_.buffers().float_count());
  for (std::size_t slot = 0; slot < optimizer_->slot_names().size(); ++slot) slots_.push_back(arena(parameters_.size));
  const GradientClipping clipping = optimizer_->clipping();
  if (!clipping.value && !clipping.norm && !clipping.global_norm) return;
  std::vector<compute::NormRange> arrays;
  for (const ArenaEntry& entry : model_.parameters().entries()) {
    arrays.push_back({.begin = entry.offset, .end = entry.offset + entry.element_count()});
  }
  clipper_.emplace(clipping, std::move(arrays), parameters_.size, memory(),
                   workers_.front().program->backend().device_kernels());
}

MemorySpace& ModelTrainable::memory() {
  HOLDFAST_ASSERT(!workers_.empty());
  return workers_.front().program->backend().memory();
}

void ModelTrainable::initialize(std::uint64_t seed) {
  for (const Arena& slot : slots_) memory().fill_zero(slot.span());
  if (has_given_weights_) {
    memory().copy_from_host(model_.parameter_values(), parameters_.span());
    memory().copy_from_host(model_.buffer_values(), buffers_.span());
    return;
  }
  std::vector<float> parameters(parameters_.size);
  std::vector<float> buffers(buffers_.size);
  model_.initialize(seed, parameters, buffers);
  memory().copy_from_host(parameters, parameters_.span());
  memory().copy_from_host(buffers, buffers_.span());
}

std::vector<StateSpan> ModelTrainable::state() {
  std::vector<StateSpan> spans;
  append_spans(model_.parameters(), parameters_.span(), "model/", StateKind::parameter, spans);
  append_spans(model_.buffers(), buffers_.span(), "model/", StateKind::buffer, spans);
  const std::vector<std::string> names = optimizer_->slot_names();
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    append_spans(model_.parameters(), slots_[slot].span(), "optimizer/" + names[slot] + "/", StateKind::optimizer_slot,
                 spans);
  }
  return spans;
}

std::vector<std::string> ModelTrainable::sum_names() const {
  std::vector<std::string> names = {"loss"};
  for (const auto& metric : metrics_) names.push_back(metric->name());
  return names;
}

std::size_t ModelTrainable::gradient_count() const {
  HOLDFAST_ASSERT(!workers_.empty());
  return parameters_.size + workers_.front().program->contribution_count();
}

ModelTrainable::WorkerState& ModelTrainable::worker(const ShardBatch& batch) {
  HOLDFAST_ASSERT(batch.worker >= 0 && batch.worker < static_cast<int>(workers_.size()));
  WorkerState& state = workers_[static_cast<std::size_t>(batch.worker)];
  state.program->call_before_operations(batch.check_cancelled);
  return state;
}

ModelTrainable::Inputs ModelTrainable::inputs(WorkerState& state, const ShardBatch& batch) const {
  if (!state.device_shard) return {batch.features, batch.targets};
  MemorySpace& memory = state.program->backend().memory();
  // Always to the same address, also from the device's own memory: a recording of the passes may name it.
  const auto move = [&](std::span<const float> from, compute::GrowingFloats& to) -> std::span<const float> {
    to.grow_to(from.size());
    const std::span<float> copied(to.data(), from.size());
    if (batch.is_on_device) {
      memory.copy(from, copied);
    } else {
      memory.copy_from_host(from, copied);
    }
    return copied;
  };
  return {move(batch.features, state.device_shard->features), move(batch.targets, state.device_shard->targets)};
}

void ModelTrainable::evaluate(WorkerState& state, const ShardBatch& batch, std::span<const float> outputs,
                              std::span<const float> targets, float scale, float* gradient,
                              std::span<float> sums) const {
  if (compute::DeviceKernels* const device = state.program->backend().device_kernels()) {
    return evaluate_on(*device, state, batch, outputs, targets.data(), scale, gradient, sums);
  }
  const std::size_t count = gradient == nullptr ? 0 : outputs.size();
  sums[0] = loss_->evaluate(outputs, targets, batch.samples, scale, {gradient, count});
  for (std::size_t metric = 0; metric < metrics_.size(); ++metric) {
    sums[1 + metric] = metrics_[metric]->sum(outputs, targets, batch.samples);
  }
}

void ModelTrainable::evaluate_on(compute::DeviceKernels& device, WorkerState& state, const ShardBatch& batch,
                                 std::span<const float> outputs, const float* targets, float scale, float* gradient,
                                 std::span<float> sums) const {
  if (batch.samples == 0) return std::fill(sums.begin(), sums.end(), 0.0F);
  DeviceBatch on_device{.outputs = outputs.data(),
                        .targets = targets,
                        .samples = batch.samples,
                        .output_elements = static_cast<std::int64_t>(outputs.size()) / batch.samples,
                        .sum = state.device_shard->sums.data()};
  loss_->evaluate_on(device, on_device, scale, gradient);
  for (const auto& metric : metrics_) {
    ++on_device.sum;
    metric->sum_on(device, on_device);
  }
}

// The key names all that the passes depend on, except what never changes: parameters, loss and metrics.
void ModelTrainable::repeat(WorkerState& state, const ShardBatch& batch, std::vector<std::uint64_t> key,
                            const PartsToQueue& parts, const std::function<void(std::size_t)>& after_part) {
  batch.check_cancelled();
  compute::Backend& backend = state.program->backend();
  const auto add = [&](const float* array) { key.push_back(address_of(array)); };
  if (state.device_shard) {
    add(state.device_shard->features.data());
    add(state.device_shard->targets.data());
    add(state.device_shard->sums.data());
  }
  add(state.output_gradient.data());
  key.push_back(static_cast<std::uint64_t>(batch.samples));
  key.push_back(static_cast<std::uint64_t>(batch.batch_samples));
  key.push_back(parts.size());
  backend.repeat(key, parts, after_part);
  if (has_told_obstacle_ || backend.repeat_obstacle().empty()) return;
  has_told_obstacle_ = true;
  log(LogLevel::warning,
      fmt::format("steps are queued kernel by kernel, with the same bits, because {} cannot record them: {}",
                  memory().device(), backend.repeat_obstacle()));
}

void ModelTrainable::queue_to_loss(WorkerState& state, const ShardBatch& batch, const Inputs& in,
                                   std::span<float> sums) {
  const std::span<const float> outputs =
      state.program->forward_training(in.features, batch.samples, parameters_.span());
  evaluate(state, batch, outputs, in.targets, 1.0F / static_cast<float>(batch.batch_samples),
           state.output_gradient.data(), sums);
}

// Gradients and sums of a shard without samples are zeros.
void ModelTrainable::compute_no_samples(WorkerState& state, const ShardBatch& batch, GradientSink& sink,
                                        std::span<float> sums) {
  const std::span<float> gradients = sink.gradients();
  queue_to_loss(state, batch, {}, sums);
  state.program->backward({}, parameters_.span(), gradients.first(parameters_.size),
                          gradients.subspan(parameters_.size));
  sink.ready(0, gradients.size());
}

void ModelTrainable::compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  WorkerState& state = worker(batch);
  if (batch.samples == 0) return compute_no_samples(state, batch, sink, sums);
  const Inputs in = inputs(state, batch);
  const std::span<float> gradients = sink.gradients();
  compute::DeviceKernels* const device = state.program->backend().device_kernels();
  const bool looks = device != nullptr && sink.asks_if_finite();
  std::vector<std::uint64_t> key = state.program->prepare_training(
      batch.samples, {.seed = batch.seed, .step = batch.step, .first_sample = batch.first_sample});
  key.push_back(address_of(gradients.data()));
  key.push_back(looks ? 1 : 0);
  const std::size_t outputs = elements(model_.output_shape(), batch.samples);
  state.output_gradient.grow_to(outputs);
  if (state.device_shard) state.device_shard->sums.grow_to(sums.size() + 1);

  const ModelProgram::BackwardArrays arrays = {.inputs = {bytes_of(in.features)},
                                               .output_gradients = {state.output_gradient.data()},
                                               .parameters = parameters_.span(),
                                               .gradients = gradients.first(parameters_.size),
                                               .contributions = gradients.subspan(parameters_.size)};
  const std::vector<BackwardPart> backward = state.program->backward_parts(batch.samples, sink.least_floats());
  // Where the backward pass is cut depends on the ranks of the generation.
  for (const BackwardPart& part : backward) key.push_back(part.gradients_begin);
  PartsToQueue parts;
  for (std::size_t part = 0; part < backward.size(); ++part) {
    parts.emplace_back([&, part] {
      if (part == 0) queue_to_loss(state, batch, in, sums);
      state.program->backward_part(backward[part], batch.samples, arrays);
      if (looks && part + 1 == backward.size()) {
        device->find_not_finite(gradients.data(), gradients.size(), state.device_shard->sums.data() + sums.size());
      }
    });
  }
  // Statistics of the batch follow the parameters, and are complete with the first part.
  std::size_t complete_from = gradients.size();
  repeat(state, batch, std::move(key), parts, [&](std::size_t part) {
    const std::size_t begin = backward[part].gradients_begin;
    sink.ready(begin, complete_from);
    complete_from = begin;
  });
  const bool is_finite = fetch_sums(state, batch, sums);
  if (looks) sink.set_finite(is_finite);
}

void ModelTrainable::compute_sums(const ShardBatch& batch, std::span<float> sums) {
  WorkerState& state = worker(batch);
  const Inputs in = inputs(state, batch);
  const auto queue = [&] {
    const std::span<const float> outputs =
        state.program->forward_inference(in.features, batch.samples, parameters_.span(), buffers_.span());
    evaluate(state, batch, outputs, in.targets, 1.0F, nullptr, sums);
  };
  if (batch.samples == 0) {
    queue();
  } else {
    std::vector<std::uint64_t> key = state.program->prepare_inference(batch.samples);
    if (state.device_shard) state.device_shard->sums.grow_to(sums.size() + 1);
    repeat(state, batch, std::move(key), {queue}, [](std::size_t) {});
  }
  fetch_sums(state, batch, sums);
}

// The only wait for a shard, after all that was queued for it. An invalid target makes the loss NaN, so targets are
// looked at only in that case.
bool ModelTrainable::fetch_sums(WorkerState& state, const ShardBatch& batch, std::span<float> sums) const {
  if (!state.device_shard || batch.samples == 0) return true;
  std::vector<float> fetched(sums.size() + 1);
  state.program->backend().memory().copy_to_host({state.device_shard->sums.data(), fetched.size()}, fetched);
  std::copy_n(fetched.begin(), sums.size(), sums.begin());
  if (std::isnan(sums[0])) state.program->backend().device_kernels()->check();
  return std::bit_cast<std::uint32_t>(fetched.back()) == 0;
}

void ModelTrainable::predict(const ShardBatch& batch, std::span<float> outputs) {
  WorkerState& state = worker(batch);
  const std::span<const float> computed = state.program->forward_inference(inputs(state, batch).features, batch.samples,
                                                                           parameters_.span(), buffers_.span());
  memory().copy_to_host(computed, outputs);
}

void ModelTrainable::apply_update(const Update& update) {
  std::vector<std::span<float>> slots;
  for (const Arena& slot : slots_) slots.push_back(slot.span());
  std::span<const float> gradients = update.gradients.first(parameters_.size);
  if (clipper_) gradients = clipper_->clip(gradients);
  ModelProgram& program = *workers_.front().program;
  if (compute::DeviceKernels* const device = program.backend().device_kernels()) {
    optimizer_->update_on(*device, update.step, parameters_.span(), gradients, slots);
  } else {
    optimizer_->update(update.step, parameters_.span(), gradients, slots);
  }
  const std::span<const float> contributions = update.gradients.subspan(parameters_.size);
  if (contributions.empty()) return;
  // A pass that is the same in each step, so it can be recorded, too. No key of a shard begins with this number.
  constexpr std::uint64_t kBuffers = std::numeric_limits<std::uint64_t>::max();
  const std::array<std::uint64_t, 2> key{kBuffers, address_of(contributions.data())};
  program.backend().repeat(key, [&] { program.update_buffers(contributions, buffers_.span()); });
}

void ModelTrainable::on_fit_end() {
  std::vector<float> parameters(parameters_.size);
  std::vector<float> buffers(buffers_.size);
  memory().copy_to_host(parameters_.span(), parameters);
  memory().copy_to_host(buffers_.span(), buffers);
  model_.set_weights(parameters, buffers);
}

}  // namespace holdfast
