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

#include "compute/deferred_products.h"
#include "core/sample_error.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "nn/model/description.h"
#include "optim/clipping_options.h"
#include "optim/update_pass.h"
#include "train/context/array_places.h"
#include "train/context/configuration_json.h"
#include "train/step/weight_averaging.h"

namespace holdfast {
namespace {

std::uint64_t address_of(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array);
}

std::size_t elements(const Shape& shape, std::int64_t samples) {
  return static_cast<std::size_t>(samples * shape.element_count());
}

}  // namespace

// As many as there are if no layer is frozen.
static std::size_t gradients_of_all(const Model& model) {
  const Model all = model.frozen_layers().empty() ? model : model.with_frozen_layers({});
  return all.parameters().float_count() + all.description()->contribution_count();
}

ModelTrainable::ModelTrainable(const Model& model, const Optimizer& optimizer, std::vector<LossHandle> losses,
                               const std::vector<MetricHandle>& metrics)
    : given_(model),
      model_(model),
      compiled_(model),
      has_given_weights_(model.has_weights()),
      given_optimizer_(optimizer.clone()),
      optimizer_(given_optimizer_),
      most_gradients_(gradients_of_all(model)),
      slot_names_(slots_of(*optimizer_)),
      evaluation_(model, std::move(losses), metrics) {
  require_own_clone("optimizer", optimizer, *optimizer_);
  check_clipping(optimizer_->name(), optimizer_->clipping());
  // A rule that cannot be computed is refused here, and not in the first step. So is a model that cannot be cut.
  optimizer_->pass(1);
  if (evaluation_.rows_at_once() > 0) without_last_product(model.description()->training);
}

static std::vector<ArraySpec> specs_of(std::span<const ModelArray> arrays) {
  std::vector<ArraySpec> specs;
  for (const ModelArray& array : arrays) {
    specs.push_back({.name = array.name, .shape = array.spec.shape, .dtype = array.spec.dtype});
  }
  return specs;
}

std::vector<ArraySpec> ModelTrainable::inputs() const {
  return specs_of(model_.inputs());
}

std::vector<ArraySpec> ModelTrainable::outputs() const {
  return specs_of(model_.outputs());
}

std::string ModelTrainable::configuration() const {
  const Optimizer& optimizer = *given_optimizer_;
  nlohmann::json configuration = {
      {"optimizer", json_given_by(name_of_class("optimizer", optimizer.name(), typeid(optimizer)), "configuration()",
                                  optimizer.configuration())},
      // A run that began with given weights is not the run that draws them, though all later choices are equal.
      {"initial_weights", has_given_weights_ ? "given" : "drawn"}};
  evaluation_.append_configuration(configuration);
  return configuration.dump();
}

std::string ModelTrainable::arithmetic() const {
  HOLDFAST_ASSERT(!workers_.empty());
  const std::string of_optimizer = given_optimizer_->arithmetic();
  return workers_.front().program->arithmetic() + (of_optimizer.empty() ? "" : ", " + of_optimizer);
}

void ModelTrainable::prepare(const Workers& workers) {
  // Earlier workers are kept: they have made their operations for the shapes that they met.
  while (static_cast<int>(workers_.size()) < workers.count) {
    auto backend = workers.device == "cpu" ? compute::make_cpu_backend(workers.threads_per_shard, workers.precision)
                                           : compute::make_cuda_backend(workers.device, workers.precision);
    MemorySpace& memory = backend->memory();
    const bool is_device = backend->device_kernels() != nullptr;
    auto sums = std::make_unique<OutputSums>(evaluation_, *backend);
    WorkerState state{std::make_unique<ModelProgram>(model_, std::move(backend)), std::move(sums),
                      compute::GrowingFloats(memory), compute::GrowingFloats(memory), nullptr};
    if (evaluation_.rows_at_once() > 0) {
      state.program->leave_out_last_product();
      state.tiles = std::make_unique<OutputTiles>(evaluation_.rows_at_once(), *state.sums, state.program->backend());
    }
    if (is_device) {
      state.device_shard =
          DeviceShard{compute::GrowingFloats(memory), compute::GrowingFloats(memory), compute::GrowingFloats(memory)};
    }
    workers_.push_back(std::move(state));
  }
  // Once: the state must stay where it is when a later generation needs more workers.
  if (!parameters_.floats) {
    allocate();
    begin_optimizer();
    if (!memory().is_host()) log_host_computations(evaluation_, memory().device());
  }
  for (WorkerState& worker : workers_) worker.program->read_buffers_from(buffers_.span());
}

MemorySpace& ModelTrainable::memory() {
  HOLDFAST_ASSERT(!workers_.empty());
  return workers_.front().program->backend().memory();
}

std::size_t ModelTrainable::gradient_count() const {
  HOLDFAST_ASSERT(!workers_.empty());
  return parameters_.size + workers_.front().program->contribution_count();
}

ModelTrainable::WorkerState& ModelTrainable::worker(const ShardBatch& batch) {
  HOLDFAST_ASSERT(batch.worker >= 0 && batch.worker < static_cast<int>(workers_.size()));
  WorkerState& state = workers_[static_cast<std::size_t>(batch.worker)];
  // A shard may take long. When the generation has ended, its result would be thrown away.
  state.program->call_before_operations([&batch](const std::string& names) {
    batch.check_cancelled();
    if (batch.begin_part) batch.begin_part(names);
  });
  return state;
}

namespace {

// How array `array` of rows of this layout becomes an array of its own; nothing if the rows are that array.
std::optional<compute::RowConversion> conversion_of(const RowLayout& layout, std::size_t array, DType to,
                                                    std::int64_t samples) {
  const ArraySpec& spec = layout.arrays()[array];
  // The rows are the array already, so the most common data sets need no copy.
  if (layout.arrays().size() == 1 && spec.dtype == to) return std::nullopt;
  return compute::RowConversion{.from = spec.dtype,
                                .to = to,
                                .rows = samples,
                                .elements = spec.shape.element_count(),
                                .row_words = static_cast<std::int64_t>(layout.words()),
                                .first_word = static_cast<std::int64_t>(layout.first_word(array))};
}

std::size_t elements_of(const compute::RowConversion& conversion) {
  // Whole cache lines, so that arrays that follow each other stay aligned.
  constexpr std::int64_t kLineFloats = 16;
  return static_cast<std::size_t>((conversion.rows * conversion.elements + kLineFloats - 1) / kLineFloats *
                                  kLineFloats);
}

}  // namespace

void ModelTrainable::list_columns(WorkerState& state, const ShardBatch& batch) const {
  MemorySpace& memory = state.program->backend().memory();
  // Always to the same address, also from the device's own memory: a recording of the passes may name it.
  const auto moved = [&](std::span<const float> from, compute::GrowingFloats DeviceShard::*to) -> const float* {
    if (!state.device_shard) return from.data();
    compute::GrowingFloats& target = (*state.device_shard).*to;
    target.grow_to(from.size());
    const std::span<float> copied(target.data(), from.size());
    if (batch.is_on_device) {
      memory.copy(from, copied);
    } else {
      memory.copy_from_host(from, copied);
    }
    return target.data();
  };
  Columns& columns = state.lists.columns;
  columns.inputs.clear();
  columns.targets.clear();
  columns.weights.clear();
  std::size_t converted = 0;
  const auto add = [&](const float* rows, const RowLayout& layout, std::size_t array, DType to,
                       std::vector<Column>& list) {
    list.push_back({.array = rows, .rows = rows, .conversion = conversion_of(layout, array, to, batch.samples)});
    if (list.back().conversion) converted += elements_of(*list.back().conversion);
  };
  const RowLayout& inputs = batch.input_layout == nullptr ? plain_row_layout() : *batch.input_layout;
  const RowLayout& targets = batch.target_layout == nullptr ? plain_row_layout() : *batch.target_layout;
  const float* const features = moved(batch.features, &DeviceShard::features);
  std::vector<std::size_t>& places = state.lists.places;
  find_array_places(inputs.arrays(), model_.inputs(), places);
  for (std::size_t array = 0; array < model_.inputs().size(); ++array) {
    add(features, inputs, places[array], computed_type(model_.inputs()[array].spec.dtype), columns.inputs);
  }
  // predict() has no targets.
  if (!batch.targets.empty() || batch.target_layout != nullptr) {
    const float* const rows = moved(batch.targets, &DeviceShard::targets);
    // The weights are the last array, and belong to no output.
    const std::size_t count = targets.arrays().size() - (batch.has_sample_weights ? 1 : 0);
    find_array_places(targets.arrays().first(count), model_.outputs(), places);
    for (const std::size_t place : places) add(rows, targets, place, DType::f32, columns.targets);
    set_weighting(columns, batch);
    if (evaluation_.are_of_each_output(columns.weights_read)) {
      find_weight_offsets(columns.weighting.weights, places, state.lists.offsets);
      for (std::size_t output = 0; output < places.size(); ++output) {
        add(rows, targets, count, DType::f32, columns.weights);
        // A part of the array of each row.
        compute::RowConversion& part = *columns.weights.back().conversion;
        converted -= elements_of(part);
        part.first_word += static_cast<std::int64_t>(state.lists.offsets[output]);
        part.elements = columns.weighting.weights[output].element_count();
        converted += elements_of(part);
      }
    } else if (batch.has_sample_weights) {
      add(rows, targets, count, DType::f32, columns.weights);
    }
  }
  give_places(state, converted);
}

// All arrays in one block, sized before the first of them gets its place: growing moves the block.
void ModelTrainable::give_places(WorkerState& state, std::size_t converted) {
  Columns& columns = state.lists.columns;
  state.converted.grow_to(converted);
  float* next = state.converted.data();
  for (std::vector<Column>* list : {&columns.inputs, &columns.targets, &columns.weights}) {
    for (Column& column : *list) {
      if (!column.conversion) continue;
      column.array = next;
      next += elements_of(*column.conversion);
    }
  }
  ModelProgram::Inputs& inputs_of_passes = state.lists.arrays.inputs;
  inputs_of_passes.clear();
  for (const Column& column : columns.inputs) {
    inputs_of_passes.push_back(reinterpret_cast<const std::byte*>(column.array));
  }
}

// Only queues on a device. It is a part of the recorded work, since the rows lie at the same address in each step.
void ModelTrainable::take_apart(WorkerState& state) const {
  compute::ArrayKernels& kernels = state.program->backend().array_kernels();
  const Columns& columns = state.lists.columns;
  for (const std::vector<Column>* list : {&columns.inputs, &columns.targets, &columns.weights}) {
    for (const Column& column : *list) {
      if (column.conversion) kernels.convert(*column.conversion, column.rows, const_cast<float*>(column.array));
    }
  }
}

void ModelTrainable::prepare_sums(WorkerState& state, std::int64_t samples, bool has_gradients) {
  ShardLists& lists = state.lists;
  if (!state.tiles) return state.sums->prepare(samples, lists.columns.weighting, lists.key);
  const LastProduct& product = state.program->last_product(has_gradients);
  state.tiles->prepare(product, samples, has_gradients, lists.columns.weighting, lists.key);
}

// The loss writes what the backward pass reads.
void ModelTrainable::place_output_gradients(WorkerState& state, std::int64_t samples) const {
  // Tiles have arrays of their own.
  if (state.tiles) return;
  std::size_t floats = 0;
  for (const ModelArray& output : model_.outputs()) floats += elements(output.spec.shape, samples);
  state.output_gradients.grow_to(floats);
  state.lists.evaluated.gradients.clear();
  state.lists.arrays.output_gradients.clear();
  float* next = state.output_gradients.data();
  for (const ModelArray& output : model_.outputs()) {
    state.lists.evaluated.gradients.push_back(next);
    state.lists.arrays.output_gradients.push_back(next);
    next += elements(output.spec.shape, samples);
  }
}

void ModelTrainable::evaluate(WorkerState& state, const ShardBatch& batch, const ModelProgram::Outputs& outputs,
                              bool has_gradients, std::span<float> sums) const {
  const Columns& columns = state.lists.columns;
  OutputSums::Shard& shard = state.lists.evaluated;
  shard.outputs.clear();
  shard.targets.clear();
  shard.weights.clear();
  shard.samples = batch.samples;
  for (std::size_t output = 0; output < columns.targets.size(); ++output) {
    shard.outputs.push_back(reinterpret_cast<const float*>(outputs[output]));
    shard.targets.push_back(columns.targets[output].array);
    if (columns.weights.empty()) continue;
    shard.weights.push_back(columns.weights[columns.weights.size() > 1 ? output : 0].array);
  }
  // An earlier shard may have left some.
  if (!has_gradients) shard.gradients.clear();
  float* const into = state.device_shard ? state.device_shard->sums.data() : sums.data();
  if (state.tiles) {
    ModelProgram::BackwardArrays& arrays = state.lists.arrays;
    // The product and its loss run together, and make the gradients that the rest of the backward pass begins with.
    state.tiles->run(outputs, shard, model_.parameters(), arrays.gradients, into);
    arrays.output_gradients.assign(state.tiles->gradients().begin(), state.tiles->gradients().end());
  } else {
    state.sums->run(shard, into);
  }
  // fetch_sums() completes the sums of a device.
  if (state.device_shard) return;
  evaluation_.complete(sums, batch.samples, columns.weighting.has_own_divisors);
}

// The key names all that the passes depend on, except what never changes: parameters that are trained, loss and
// metrics.
void ModelTrainable::repeat(WorkerState& state, const ShardBatch& batch,
                            const std::function<void(std::size_t)>& after_part) {
  // A recording that is repeated calls no operation on the host, so this is the only look before it.
  batch.check_cancelled();
  compute::Backend& backend = state.program->backend();
  std::vector<std::uint64_t>& key = state.lists.key;
  const auto add = [&](const float* array) { key.push_back(address_of(array)); };
  if (state.device_shard) {
    add(state.device_shard->features.data());
    add(state.device_shard->targets.data());
    add(state.device_shard->sums.data());
  }
  add(state.output_gradients.data());
  add(state.converted.data());
  // Data sets of one Trainer may have their arrays in other orders and types.
  const Columns& columns = state.lists.columns;
  for (const std::vector<Column>* list : {&columns.inputs, &columns.targets, &columns.weights}) {
    for (const Column& column : *list) {
      key.push_back(column.conversion ? static_cast<std::uint64_t>(column.conversion->first_word) + 1 : 0);
      if (!column.conversion) continue;
      key.push_back(static_cast<std::uint64_t>(column.conversion->row_words));
      key.push_back(static_cast<std::uint64_t>(column.conversion->from));
    }
  }
  key.push_back(static_cast<std::uint64_t>(batch.samples));
  key.push_back(static_cast<std::uint64_t>(batch.batch_samples));
  key.push_back(state.lists.parts.size());
  state.sums->repeat(key, state.lists.parts, after_part);
  if (has_told_obstacle_ || backend.repeat_obstacle().empty()) return;
  // Once for a run: every step would say the same.
  has_told_obstacle_ = true;
  log(LogLevel::warning,
      fmt::format("steps are queued kernel by kernel, with the same bits, because {} cannot record them: {}",
                  memory().device(), backend.repeat_obstacle()));
}

void ModelTrainable::queue_to_loss(WorkerState& state, const ShardBatch& batch, std::span<float> sums) {
  take_apart(state);
  const ModelProgram::Outputs& outputs =
      state.program->run_training(state.lists.arrays.inputs, batch.samples, parameters_.span());
  if (batch.begin_part) batch.begin_part("loss");
  evaluate(state, batch, outputs, true, sums);
}

// Gradients and sums of a shard without samples are zeros.
void ModelTrainable::compute_no_samples(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  HOLDFAST_ASSERT(batch.samples == 0);
  std::ranges::fill(sums, 0.0F);
  memory().fill_zero(sink.gradients());
  sink.ready(0, sink.gradients().size());
}

// Says which sample of the global batch an error of a sample of the shard is of.
template <class Run>
static void naming_samples(const ShardBatch& batch, const char* where, const Run& run) {
  try {
    run();
  } catch (const SampleError& error) {
    const std::int64_t sample = batch.first_sample + error.sample();
    throw error.renamed(fmt::format("sample {} of {} {} step {}", sample, batch.batch_samples, where, batch.step),
                        sample);
  }
}

void ModelTrainable::compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  naming_samples(batch, "in", [&] { compute_gradients_of(batch, sink, sums); });
}

void ModelTrainable::compute_gradients_of(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  WorkerState& state = worker(batch);
  if (batch.samples == 0) return compute_no_samples(batch, sink, sums);
  list_columns(state, batch);
  ShardLists& lists = state.lists;
  const std::span<float> gradients = sink.gradients();
  // Set in any case, since the worker's last shard may have had others.
  state.program->backend().defer_products(sink.deferred());
  if (sink.deferred() != nullptr) sink.deferred()->begin(gradients, state.program->gradients_of_one_product());
  compute::DeviceKernels* const device = state.program->backend().device_kernels();
  // Only a device looks here. On a CPU the sum over the shards is looked at instead.
  const bool looks = device != nullptr && sink.asks_if_finite();
  const auto prepared = state.program->prepare_training(
      batch.samples, {.seed = batch.seed, .step = batch.step, .first_sample = batch.first_sample});
  lists.key.assign(prepared.begin(), prepared.end());
  prepare_sums(state, batch.samples, true);
  // Slots of the communicator take turns, and each is another recording.
  lists.key.push_back(address_of(gradients.data()));
  // Another kernel is queued at the end, so this is another recording.
  lists.key.push_back(looks ? 1 : 0);
  place_output_gradients(state, batch.samples);
  if (state.device_shard) state.device_shard->sums.grow_to(sums.size() + 1);

  // The gradients of parameters come first, then what each shard contributes to the statistics of the batch.
  lists.arrays.parameters = parameters_.span();
  lists.arrays.gradients = gradients.first(parameters_.size);
  lists.arrays.contributions = gradients.subspan(parameters_.size);
  const std::vector<BackwardPart>& backward = state.program->backward_parts(batch.samples, sink.least_floats());
  // Where the backward pass is cut depends on the ranks of the generation.
  for (const BackwardPart& part : backward) lists.key.push_back(part.gradients_begin);
  const auto queue_part = [&](std::size_t part) {
    // The forward pass belongs to the first part, so a single key covers the whole shard.
    if (part == 0) queue_to_loss(state, batch, sums);
    state.program->backward_part(backward[part], batch.samples, lists.arrays);
    if (looks && part + 1 == backward.size()) {
      device->find_not_finite(gradients.data(), gradients.size(), state.device_shard->sums.data() + sums.size());
    }
  };
  lists.parts.clear();
  // Two words are what a std::function holds without memory of its own.
  for (std::size_t part = 0; part < backward.size(); ++part) {
    lists.parts.emplace_back([&queue_part, part] { queue_part(part); });
  }
  // Statistics of the batch follow the parameters, and are complete with the first part.
  std::size_t complete_from = gradients.size();
  const auto declare_ready = [&](std::size_t part) {
    const std::size_t begin = backward[part].gradients_begin;
    sink.ready(begin, complete_from);
    complete_from = begin;
  };
  repeat(state, batch, std::ref(declare_ready));
  const bool is_finite = fetch_sums(state, batch, sums);
  if (looks) sink.set_finite(is_finite);
}

void ModelTrainable::compute_sums(const ShardBatch& batch, std::span<float> sums) {
  naming_samples(batch, "of a batch evaluated after", [&] { compute_sums_of(batch, sums); });
}

void ModelTrainable::compute_sums_of(const ShardBatch& batch, std::span<float> sums) {
  WorkerState& state = worker(batch);
  if (batch.samples == 0) {
    std::ranges::fill(sums, 0.0F);
    return;
  }
  list_columns(state, batch);
  const auto queue = [&] {
    take_apart(state);
    const ModelProgram::Outputs& outputs =
        state.program->run_evaluation(state.lists.arrays.inputs, batch.samples, weights(), buffers_.span());
    evaluate(state, batch, outputs, false, sums);
  };
  ShardLists& lists = state.lists;
  const auto prepared = state.program->prepare_evaluation(batch.samples);
  lists.key.assign(prepared.begin(), prepared.end());
  prepare_sums(state, batch.samples, false);
  lists.key.push_back(address_of(weights().data()));
  if (state.device_shard) state.device_shard->sums.grow_to(sums.size() + 1);
  state.lists.parts.assign(1, std::ref(queue));
  repeat(state, batch, [](std::size_t) {});
  fetch_sums(state, batch, sums);
}

// The only wait for a shard, after all that was queued for it. An invalid target makes the loss NaN, so targets are
// looked at only in that case.
bool ModelTrainable::fetch_sums(WorkerState& state, const ShardBatch& batch, std::span<float> sums) const {
  if (!state.device_shard || batch.samples == 0) return true;
  // One place more, for the word that says whether something is not finite.
  std::vector<float> fetched(sums.size() + 1);
  state.program->backend().memory().copy_to_host({state.device_shard->sums.data(), fetched.size()}, fetched);
  std::copy_n(fetched.begin(), sums.size(), sums.begin());
  evaluation_.complete(sums, batch.samples, state.lists.columns.weighting.has_own_divisors);
  const auto losses = sums.first(evaluation_.first_metric());
  if (std::ranges::any_of(losses, [](float loss) { return std::isnan(loss); })) state.sums->check_labels(batch.samples);
  // The device counts in an integer. It travels with the sums, so it needs no copy of its own.
  return std::bit_cast<std::uint32_t>(fetched.back()) == 0;
}

void ModelTrainable::predict(const ShardBatch& batch, std::span<float> outputs) {
  naming_samples(batch, "predicted after", [&] { predict_samples(batch, outputs); });
}

void ModelTrainable::predict_samples(const ShardBatch& batch, std::span<float> outputs) {
  WorkerState& state = worker(batch);
  if (batch.samples == 0) return;
  list_columns(state, batch);
  take_apart(state);
  const ModelProgram::Outputs& computed =
      state.program->run_inference(state.lists.arrays.inputs, batch.samples, weights(), buffers_.span());
  for (std::size_t output = 0; output < computed.size(); ++output) {
    const std::size_t count = elements(model_.outputs()[output].spec.shape, batch.samples);
    memory().copy_to_host({reinterpret_cast<const float*>(computed[output]), count}, outputs.first(count));
    outputs = outputs.subspan(count);
  }
}

}  // namespace holdfast
