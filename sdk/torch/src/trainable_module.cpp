// The functions that a Trainer calls, in terms of the module's arrays. What they compute is in module_training.cpp.
// Names of state, graph and configuration are those that savepoints and run.json hold: docs/format.md.

#include "holdfast/torch/trainable_module.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/backend.h"
#include "compute/cublas_workspace.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "module_arrays.h"
#include "module_training.h"
#include "optim/clipping_options.h"
#include "optim/gradient_clipper.h"
#include "optim/update_pass.h"
#include "shard_position.h"
#include "torch_optimizer.h"
#include "train/step/grouped_update.h"

namespace holdfast::torch {

using Json = nlohmann::json;

// The seed of the run itself, so that a program of LibTorch with manual_seed() begins with the same weights.
std::uint64_t seed_of_initial_parameters(std::uint64_t seed) {
  return seed;
}

// A number of its own for each shard: neighbours that began alike would draw alike.
std::uint64_t seed_of_shard(std::uint64_t seed, std::int64_t step, std::int64_t first_sample) {
  return Random(seed, Purpose::generator, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(first_sample))
      .next_u64();
}

// Makes a module and calls it once, so that mistakes in the functions are found where they are given.
AnyTrainableModule::AnyTrainableModule(ModuleFunctions functions)
    : implementation_(std::make_unique<Implementation>(std::move(functions))) {}

// Here, where the implementation is complete: the header includes nothing of LibTorch's optimizers.
AnyTrainableModule::~AnyTrainableModule() = default;

// Says what `holdfast convert` and a resume need: names, and all that is not an array of f32. Keys that would be empty
// are left out, so that modules without these features keep their texts.
std::string AnyTrainableModule::graph() const {
  const ModuleArrays& arrays = *implementation_->arrays;
  Json config = {{"arrays", arrays.order}};
  if (!implementation_->functions.description.empty()) config["description"] = implementation_->functions.description;
  if (!arrays.counters.empty()) config["counters"] = arrays.counters;
  // A module that was trained before has counted.
  for (std::size_t i = 0; i < arrays.counters.size(); ++i) {
    if (arrays.counter_starts[i] != 0) config["counter_starts"][arrays.counters[i]] = arrays.counter_starts[i];
  }
  if (!arrays.aliases.empty()) config["aliases"] = arrays.aliases;
  for (const Constant& constant : arrays.constants) {
    config["constants"].push_back(
        {{"name", constant.name}, {"dtype", constant.dtype}, {"shape", constant.shape}, {"bytes", constant.bytes}});
  }
  return Json{{"class_name", "TorchModule"}, {"config", std::move(config)}}.dump();
}

// Functions of the application have no text. So a resume compares what is known of them: names of sums, draws,
// optimizer and clipping.
std::string AnyTrainableModule::configuration() const {
  const ModuleFunctions& functions = implementation_->functions;
  Json configuration = {{"sums", sum_names()}, {"draws", functions.draws}};
  configuration["optimizer"] = Json::parse(implementation_->optimizer ? implementation_->optimizer->configuration()
                                                                      : functions.optimizer->configuration());
  // Left out where there is none, so that configurations of runs without clipping stay as they are.
  if (functions.clipping.value) configuration["clip_value"] = *functions.clipping.value;
  if (functions.clipping.norm) configuration["clip_norm"] = *functions.clipping.norm;
  if (functions.clipping.global_norm) configuration["clip_global_norm"] = *functions.clipping.global_norm;
  return configuration.dump();
}

// LibTorch's version, its libraries and the instruction set that it chose, and Holdfast's own for what it computes.
std::string AnyTrainableModule::arithmetic() const {
  std::string text = fmt::format("LibTorch {}", TORCH_VERSION);
  // These two lines say what was chosen on this machine. Those of the build are the same everywhere.
  std::istringstream lines(at::show_config());
  for (std::string line; std::getline(lines, line);) {
    for (const char* part : {"MKL", "CPU capability"}) {
      if (line.find("Build settings") == std::string::npos && line.find(part) != std::string::npos) {
        text += ", " + line.substr(line.find_first_not_of(" -"));
      }
    }
  }
  // OpenBLAS has products of its own for each kind of processor.
  using CoreName = char* (*)();
  if (auto* core = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"))) {
    text += fmt::format(", OpenBLAS for {}", core());
  }
  const Implementation& self = *implementation_;
  text += fmt::format(", {} threads a shard", self.threads_per_shard);
  const bool is_computed_with = self.device || !self.optimizer || self.clipper;
  if (self.backend && is_computed_with) text += "; " + self.backend->description();
  const std::string of_optimizer = self.optimizer ? "" : self.functions.optimizer->arithmetic();
  if (!of_optimizer.empty()) text += ", " + of_optimizer;
  const char* const workspace = std::getenv(compute::kCublasWorkspaceVariable);
  if (self.device) text += fmt::format(", cuBLAS with {}", workspace == nullptr ? "no workspace" : workspace);
  return text;
}

// Trainable has these three for samples of one array. The lists below say all.
Shape AnyTrainableModule::feature_shape() const {
  return implementation_->functions.inputs.front().shape;
}

Shape AnyTrainableModule::target_shape() const {
  return implementation_->functions.targets.front().shape;
}

Shape AnyTrainableModule::output_shape() const {
  return implementation_->output_specs.front().shape;
}

std::vector<ArraySpec> AnyTrainableModule::inputs() const {
  return implementation_->functions.inputs;
}

std::vector<ArraySpec> AnyTrainableModule::targets() const {
  return implementation_->functions.targets;
}

std::vector<ArraySpec> AnyTrainableModule::outputs() const {
  return implementation_->output_specs;
}

// A loss returns a value for each sample, so a weight for a part of a sample would have nothing to multiply.
void AnyTrainableModule::check_sample_weights(const ArraySpec& weights) const {
  if (weights.shape.element_count() == 1) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("a TrainableModule takes one weight a sample, and the data set has weights of shape {}; let the "
                  "loss read them as a target",
                  weights.shape.to_string()));
}

void AnyTrainableModule::prepare(const Workers& workers) {
  implementation_->make_workers(workers);
}

MemorySpace& AnyTrainableModule::memory() {
  HOLDFAST_ASSERT(implementation_->backend != nullptr);
  return implementation_->memory();
}

bool AnyTrainableModule::reads_samples_on_device() const {
  return implementation_->device != nullptr;
}

void AnyTrainableModule::initialize(std::uint64_t seed) {
  Implementation& self = *implementation_;
  const std::scoped_lock lock(generator_lock());
  use_threads(self.threads_per_shard);
  ::torch::manual_seed(seed_of_initial_parameters(seed));
  // In the memory of the host, so that each device begins with the same numbers.
  const WorkerModule module(self.made_module(), *self.arrays);
  std::vector<float> parameters(self.parameters.size);
  std::vector<float> frozen(self.frozen.size);
  std::vector<float> buffers(self.buffers.size);
  module.read_initial(parameters, frozen, buffers);
  self.store(parameters, self.parameters.span());
  self.store(frozen, self.frozen.span());
  self.store(buffers, self.buffers.span());
  self.memory().fill_zero(self.counts.span());
  for (std::size_t slot = 0; slot < self.slots.size(); ++slot) {
    std::vector<float> arena;
    if (self.optimizer) {
      arena = self.optimizer->initial_slot(slot);
    } else {
      arena.resize(self.parameter_floats);
      for (std::size_t i = 0; i < self.arrays->parameters.entries().size(); ++i) {
        std::ranges::fill(self.arrays->parameters.view(std::span<float>(arena), i),
                          self.functions.optimizer->initial_value_of_slot(slot));
      }
    }
    self.store(arena, self.slots[slot].span());
  }
}

// The order is that in which states are compared, sent and saved. Frozen parameters are there too: a savepoint is the
// whole module.
std::vector<StateSpan> AnyTrainableModule::state() {
  Implementation& self = *implementation_;
  std::vector<StateSpan> spans;
  const auto append = [&](const ArenaLayout& layout, std::span<float> arena, const std::string& prefix, StateKind kind,
                          const auto& is_there) {
    for (std::size_t i = 0; i < layout.entries().size(); ++i) {
      const ArenaEntry& entry = layout.entries()[i];
      if (is_there(i)) spans.push_back({prefix + entry.name, kind, entry.shape, layout.view(arena, i)});
    }
  };
  const auto all = [](std::size_t) { return true; };
  append(self.arrays->parameters, self.parameters.span(), "model/", StateKind::parameter, all);
  append(self.arrays->frozen, self.frozen.span(), "model/", StateKind::parameter, all);
  append(self.arrays->buffers, self.buffers.span(), "model/", StateKind::buffer, all);
  const std::vector<std::string> names =
      self.optimizer ? self.optimizer->slot_names() : self.functions.optimizer->slot_names();
  for (std::size_t slot = 0; slot < names.size(); ++slot) {
    append(self.arrays->parameters, self.slots[slot].span(), "optimizer/" + names[slot] + "/",
           StateKind::optimizer_slot,
           [&](std::size_t i) { return !self.optimizer || self.optimizer->has_slot(slot, i); });
  }
  if (self.optimizer) {
    spans.push_back({"optimizer/updates", StateKind::optimizer_slot, Shape{static_cast<std::int64_t>(self.counts.size)},
                     self.counts.span()});
  }
  return spans;
}

// In the order in which a shard writes its sums.
std::vector<std::string> AnyTrainableModule::sum_names() const {
  std::vector<std::string> names{"loss"};
  for (const Metric& metric : implementation_->functions.metrics) names.push_back(metric.name);
  return names;
}

// The tail is summed like gradients, so it needs no way of its own between the ranks.
std::size_t AnyTrainableModule::gradient_count() const {
  return implementation_->parameter_floats + implementation_->tail_floats;
}

// The first shard of a run is computed twice, by the rank that has it. A mistake of the module is found there, before
// there is anything to lose.
void AnyTrainableModule::compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) {
  Implementation& self = *implementation_;
  const std::span<float> gradients = sink.gradients();
  const std::shared_ptr<void> scope = self.enter();
  if (batch.samples == 0) {
    std::ranges::fill(sums, 0.0F);
    self.memory().fill_zero(gradients);
  } else {
    // Padding between arrays is summed too.
    self.device ? self.memory().fill_zero(gradients) : self.clear_padding(gradients);
    const ShardBatch shard = self.placed(batch);
    const bool is_first = batch.step == 0 && batch.first_sample == 0;
    is_first ? self.train_twice(shard, gradients, sums) : self.seed_and_train(shard, gradients, sums);
  }
  sink.ready(0, gradients.size());
}

// With the module in eval(), so that an evaluation says what predict() would give.
void AnyTrainableModule::compute_sums(const ShardBatch& batch, std::span<float> sums) {
  if (batch.samples == 0) {
    std::ranges::fill(sums, 0.0F);
    return;
  }
  Implementation& self = *implementation_;
  const at::NoGradGuard no_gradients;
  const std::shared_ptr<void> scope = self.enter();
  const ShardBatch shard = self.placed(batch);
  const Batch tensors = self.batch_of(shard);
  const Outputs outputs = self.infer(shard, tensors);
  const at::Tensor loss = with_errors_of_torch("the loss", [&] { return self.functions.loss(outputs, tensors); });
  std::ranges::copy(
      with_errors_of_torch("the results", [&] { return self.read(self.sums_of(outputs, loss, tensors, shard)); }),
      sums.begin());
}

// One output after another, each of all samples of the shard.
void AnyTrainableModule::predict(const ShardBatch& batch, std::span<float> outputs) {
  if (batch.samples == 0) return;
  Implementation& self = *implementation_;
  const at::NoGradGuard no_gradients;
  const std::shared_ptr<void> scope = self.enter();
  const ShardBatch shard = self.placed(batch);
  const Outputs computed = self.infer(shard, self.batch_of(shard));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    // A forward() may end on the host.
    const at::Tensor whole = computed[i].to(self.place()).contiguous();
    const auto count = static_cast<std::size_t>(whole.numel());
    HOLDFAST_ASSERT(begin + count <= outputs.size());
    self.memory().copy_to_host({whole.data_ptr<float>(), count}, outputs.subspan(begin, count));
    begin += count;
  }
}

// For logs and callbacks; apply_update() gets the rate of a callback with the update.
std::optional<float> AnyTrainableModule::learning_rate(std::int64_t update) const {
  const Implementation& self = *implementation_;
  if (self.optimizer) return self.optimizer->learning_rate(update);
  const std::optional<LearningRate> rate = self.functions.optimizer->learning_rate();
  return rate ? std::optional(rate->of_update(update)) : std::nullopt;
}

// set_lr() of LibTorch takes any number, also a negative one, so the checks are here.
void AnyTrainableModule::check_learning_rate(float rate) const {
  const Implementation& self = *implementation_;
  const auto refuse = [&](const char* problem) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a callback sets the learning rate {}, {}", rate, problem));
  };
  if (!(rate >= 0) || std::isinf(rate)) refuse("and a rate is a number of at least 0");
  constexpr const char* kSchedule =
      "and that of the optimizer follows a schedule, which would be lost; leave the schedule or the callback out";
  if (self.optimizer) {
    if (self.optimizer->has_schedule()) refuse(kSchedule);
    return;
  }
  const std::optional<LearningRate> own = self.functions.optimizer->learning_rate();
  if (own && !own->constant()) refuse(kSchedule);
  if (!own || self.functions.optimizer->with_learning_rate(rate) == nullptr) {
    refuse(
        "and the optimizer has none that callbacks may change; override its learning_rate() and with_learning_rate()");
  }
}

// Where all samples are masked there is no mean, and the state stays.
void AnyTrainableModule::apply_update(const Update& update) {
  if (update.is_weighted && update.weight == 0) return;
  const std::shared_ptr<void> scope = implementation_->enter();
  implementation_->update_parameters(update);
  implementation_->steps = update.step;
  implementation_->update_buffers(update.gradients.subspan(implementation_->parameter_floats));
}

// Any worker's module would do, since all view the same parameters. Buffers are its own, so it gets those of the state.
std::shared_ptr<::torch::nn::Module> AnyTrainableModule::module() {
  Implementation& self = *implementation_;
  if (self.workers.empty()) {
    throw Error(ErrorCode::invalid_argument, "a TrainableModule was asked for its module before fit() began");
  }
  const std::shared_ptr<void> scope = self.enter();
  self.workers.front().set_training(false);
  self.workers.front().set_buffers(self.buffers.span(), self.steps);
  // The application has a stream of its own.
  self.memory().wait();
  return self.workers.front().pointer();
}

}  // namespace holdfast::torch
