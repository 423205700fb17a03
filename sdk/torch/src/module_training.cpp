// A shard is computed by the module of its worker, with gradients from torch::autograd::grad(): they are tensors of
// their own, so that workers whose modules share parameters may run at once. After the gradients each shard writes a
// tail, which is summed with them: for each parameter whether the shard used it, the buffers that forward() changed
// times the shard's part of the batch, and for each buffer that part if it changed. On a device all of this is queued,
// and the host waits once for a shard, for the numbers that it needs. docs/decisions/torch.md

#include "module_training.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sstream>

#include "compute/backend.h"
#include "freed_memory.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "module_arrays.h"
#include "optim/clipping_options.h"
#include "optim/gradient_clipper.h"
#include "shard_position.h"
#include "shard_tensors.h"
#include "torch_optimizer.h"
#include "train/step/grouped_update.h"

namespace holdfast::torch {
std::mutex& generator_lock() {
  static std::mutex lock;
  return lock;
}

// A number of the calling thread. It is remembered, so that a shard need not set it again.
void use_threads(int threads) {
  thread_local int used = 0;
  if (used == threads) return;
  at::set_num_threads(threads);
  used = threads;
}

namespace {

// OpenBLAS has one number for the process, on which the bits of its products depend. So it is set once, and the same
// for all shards.
void use_threads_in_openblas(int threads) {
  using SetThreads = void (*)(int);
  if (auto* set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) set(threads);
}

// The shape as LibTorch prints it, which its users know.
std::string described(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes();
  return text.str();
}

// LibTorch counts the operations that write to a tensor.
std::vector<std::int64_t> versions_of_inputs(const Batch& batch, std::size_t inputs) {
  std::vector<std::int64_t> versions;
  for (std::size_t i = 0; i < inputs; ++i) versions.push_back(batch.input(i)._version());
  return versions;
}

// The samples lie there for the metrics as well, and for the second time that a step is computed.
void require_same_inputs(const Batch& batch, std::span<const ArraySpec> inputs,
                         const std::vector<std::int64_t>& versions) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (batch.input(i)._version() == versions[i]) continue;
    const std::string name = inputs[i].name.empty() ? "" : fmt::format(" (\"{}\")", inputs[i].name);
    throw Error(ErrorCode::unsupported,
                fmt::format("forward() of the module wrote to its input {}{}, as operations whose names end with _ do; "
                            "write to a copy of it, clone(), or use the operation without _",
                            i, name));
  }
}

}  // namespace

// The module that is made here serves the first worker later. Until then it says what arrays there are.
AnyTrainableModule::Implementation::Implementation(ModuleFunctions given) : functions(std::move(given)) {
  check();
  first = made_module();
  if (first == nullptr) refuse("the function `module` returned no module; return std::make_shared<Net>(...)");
  arrays = std::make_unique<ModuleArrays>(*first);
  if (arrays->parameters.entries().empty()) {
    refuse("the module has no parameter that requires a gradient, so there is nothing to train");
  }
  find_outputs();
  // The tail has a mark for each parameter, the buffers, and a mark for each buffer, in this order.
  parameter_floats = arrays->parameters.float_count();
  buffer_floats = arrays->buffers.float_count();
  tail_floats = arrays->parameters.entries().size() + buffer_floats + arrays->buffers.entries().size();
  clipping_of_torch = functions.clipping.value || functions.clipping.norm || functions.clipping.global_norm;
  check_clipping("torch::optim", functions.clipping);
  // Its slots are part of the state, which is asked for before the first step.
  if (functions.make_optimizer) {
    WorkerModule module(first, *arrays);
    auto made = with_errors_of_torch("the optimizer", [&] { return functions.make_optimizer(*first); });
    optimizer.emplace(std::move(made), module.parameters(), arrays->parameters, functions.learning_rate);
  }
}

// All that can be wrong with the functions alone is said here, before a module is made.
void AnyTrainableModule::Implementation::check() const {
  if (!functions.make_module) {
    refuse(
        "the module's class has no constructor without arguments; give TrainableOptions::module, a function that "
        "makes one");
  }
  if (!functions.forward) {
    refuse("the module has no forward(torch::Tensor); give TrainableOptions::forward, a function of module and batch");
  }
  if (!functions.loss) refuse("there is no loss; give TrainableOptions::loss, a function of outputs and batch");
  if (!functions.make_optimizer && !functions.optimizer) {
    refuse(
        "there is no optimizer; give TrainableOptions::optimizer, a function of the module that returns one of "
        "torch::optim, or one of Holdfast");
  }
  for (const Metric& metric : functions.metrics) {
    if (!metric.function) refuse(fmt::format("the metric \"{}\" has no function", metric.name));
  }
  if (functions.inputs.empty()) {
    refuse("there are no inputs; give TrainableOptions::inputs, the arrays of a sample, such as {{.shape = {784}}}");
  }
  if (functions.targets.empty()) {
    refuse("there are no targets; give TrainableOptions::targets, such as {{.dtype = holdfast::DType::i64}}");
  }
  // Averages would be a further copy of the parameters, which no part of this class keeps or evaluates.
  if (functions.optimizer && functions.optimizer->weight_average().is_kept) {
    throw Error(ErrorCode::unsupported, "a TrainableModule keeps no moving averages; leave use_ema out");
  }
  // Two places for one option could contradict each other.
  if (functions.optimizer && (functions.learning_rate || has_clipping())) {
    refuse("learning_rate and clipping are for optimizers of LibTorch; give them to Holdfast's optimizer instead");
  }
}

// Two samples and not one: an axis of extent 1 could be mistaken for that of the samples.
void AnyTrainableModule::Implementation::find_outputs() {
  constexpr std::int64_t kSamples = 2;
  const at::NoGradGuard no_gradients;
  // A module of its own: forward() may change buffers.
  WorkerModule module(made_module(), *arrays);
  const RowLayout layout(functions.inputs);
  // Zeros are valid for each type of a sample, as numbers of words and classes too.
  const std::vector<float> zeros(layout.words() * kSamples);
  const Outputs outputs = with_errors_of_torch("forward() with two samples of zeros", [&] {
    module.set_training(false);
    return functions.forward(module.module(),
                             Batch(tensors_of(zeros, layout, kSamples, functions.inputs.size()), {}, kSamples));
  });
  module.require_arrays_as_made();
  if (outputs.size() == 0) refuse("forward() returned no output; return a tensor");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    if (!output.defined() || output.dim() < 1 || output.size(0) != kSamples || output.scalar_type() != at::kFloat) {
      refuse(
          fmt::format("output {} of forward() has the shape {} and the type {} for two samples; return tensors of f32 "
                      "whose first axis counts the samples",
                      i, described(output), at::toString(output.scalar_type())));
    }
    const auto sizes = output.sizes().slice(1);
    output_specs.push_back({.name = {}, .shape = Shape(std::vector<std::int64_t>(sizes.begin(), sizes.end()))});
  }
}

// Memory of a sink is undefined at first, and norms and sums of gradients go over the padding as well.
void AnyTrainableModule::Implementation::clear_padding(std::span<float> gradients) const {
  std::size_t end = 0;
  for (const ArenaEntry& entry : arrays->parameters.entries()) {
    std::fill(gradients.begin() + static_cast<std::ptrdiff_t>(end),
              gradients.begin() + static_cast<std::ptrdiff_t>(entry.offset), 0.0F);
    end = entry.offset + entry.element_count();
  }
  // The last array's, and that between buffers, which are in the tail.
  std::fill(gradients.begin() + static_cast<std::ptrdiff_t>(end), gradients.end(), 0.0F);
}

// Once: the state must stay where it is when a later generation needs more workers.
void AnyTrainableModule::Implementation::allocate(const Workers& asked) {
  if (asked.device == "cpu") {
    backend = compute::make_cpu_backend(asked.threads_per_shard);
  } else {
    backend = compute::make_cuda_backend(asked.device, asked.precision);
    device = torch_device_maker()(asked.device, *backend);
  }
  const auto arena = [&](std::size_t floats) { return Arena{memory().allocate(floats), floats}; };
  parameters = arena(parameter_floats);
  frozen = arena(arrays->frozen.float_count());
  buffers = arena(buffer_floats);
  counts = arena(arrays->parameters.entries().size());
  const std::size_t slot_count = optimizer ? optimizer->slot_names().size() : functions.optimizer->slot_names().size();
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    slots.push_back(arena(parameter_floats));
    slot_spans.push_back(slots.back().span());
  }
  std::vector<compute::NormRange> ranges;
  std::vector<std::string> names;
  for (const ArenaEntry& entry : arrays->parameters.entries()) {
    ranges.push_back({.begin = entry.offset, .end = entry.offset + entry.element_count()});
    names.push_back(entry.name);
  }
  const GradientClipping clipping = optimizer ? functions.clipping : functions.optimizer->clipping();
  if (clipping.value || clipping.norm || clipping.global_norm) {
    clipper.emplace(clipping, std::move(ranges), parameter_floats, memory(), backend->device_kernels());
  }
  if (optimizer) return optimizer->view(parameters.span(), slot_spans, place());
  if (!functions.optimizer->parameter_rules().is_empty() || functions.optimizer->needs_whole_arrays()) {
    grouped.emplace(*functions.optimizer, arrays->parameters, names);
  }
}

// LibTorch refuses operations that have no deterministic form, and torch_errors.cpp says so. Some are quicker without:
// a step that is repeated after a failure would then have other bits.
void AnyTrainableModule::Implementation::make_workers(const Workers& asked) {
  require_torch_device(asked);
  if (asked.device == "cpu") keep_freed_memory();
  threads_per_shard = asked.threads_per_shard;
  threads = asked.count * asked.threads_per_shard;
  use_threads_in_openblas(threads_per_shard);
  auto& context = at::globalContext();
  context.setDeterministicAlgorithms(true, false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  // Memory that an operation does not fill is an error of the module, and to fill it takes time in each step.
  context.setDeterministicFillUninitializedMemory(false);
#endif
  if (asked.device != "cpu") {
    // LibTorch's own default is f32 for products and tf32 for convolutions.
    context.setAllowTF32CuBLAS(asked.precision == Precision::tf32);
    context.setAllowTF32CuDNN(asked.precision == Precision::tf32);
  }
  if (!backend) allocate(asked);
  const std::shared_ptr<void> scope = enter();
  while (static_cast<int>(workers.size()) < asked.count) {
    workers.emplace_back(workers.empty() ? first : made_module(), *arrays);
    if (device) with_errors_of_torch("the move to the device", [&] { workers.back().move_to(place()); });
    workers.back().view(parameters.span(), frozen.span());
    if (device) rows.push_back({compute::GrowingFloats(memory()), compute::GrowingFloats(memory())});
  }
}

WorkerModule& AnyTrainableModule::Implementation::worker(const ShardBatch& shard) {
  HOLDFAST_ASSERT(shard.worker >= 0 && shard.worker < static_cast<int>(workers.size()));
  use_threads(threads_per_shard);
  return workers[static_cast<std::size_t>(shard.worker)];
}

ShardBatch AnyTrainableModule::Implementation::placed(const ShardBatch& shard) {
  ShardBatch placed = shard;
  if (!device) return placed;
  // Samples that are on the device already are copied, too: LibTorch's products are chosen by the alignment of their
  // factors, and where a shard begins in a replica's batch hangs on the number of replicas.
  const auto moved = [&](std::span<const float> from, compute::GrowingFloats& to) -> std::span<const float> {
    if (from.empty()) return {};
    to.grow_to(from.size());
    const std::span<float> rows_of_shard(to.data(), from.size());
    shard.is_on_device ? memory().copy(from, rows_of_shard) : store(from, rows_of_shard);
    return rows_of_shard;
  };
  HOLDFAST_ASSERT(shard.worker >= 0 && shard.worker < static_cast<int>(rows.size()));
  Rows& of_worker = rows[static_cast<std::size_t>(shard.worker)];
  placed.features = moved(shard.features, of_worker.features);
  placed.targets = moved(shard.targets, of_worker.targets);
  placed.is_on_device = true;
  return placed;
}

Batch AnyTrainableModule::Implementation::batch_of(const ShardBatch& shard) const {
  const RowLayout inputs = layout_of(shard.input_layout, functions.inputs);
  std::vector<NamedTensor> of_targets;
  if (!shard.targets.empty() || shard.target_layout != nullptr) {
    const RowLayout targets = layout_of(shard.target_layout, functions.targets);
    const std::size_t weights = shard.has_sample_weights ? 1 : 0;
    of_targets = tensors_of(shard.targets, targets, shard.samples, targets.arrays().size() - weights, place());
  }
  return {tensors_of(shard.features, inputs, shard.samples, inputs.arrays().size(), place()), std::move(of_targets),
          shard.samples};
}

// Undefined without weights.
at::Tensor AnyTrainableModule::Implementation::weights_of(const ShardBatch& shard) const {
  if (!shard.has_sample_weights) return {};
  const std::size_t last = shard.target_layout->arrays().size() - 1;
  return tensors_of(shard.targets, *shard.target_layout, shard.samples, last + 1, place())[last]
      .tensor.to(at::kFloat)
      .reshape({shard.samples});
}

// The sum over the samples, weighted if there are weights, of what a loss or metric returned.
Reading AnyTrainableModule::Implementation::sum_of(const at::Tensor& values, const ShardBatch& shard,
                                                   const at::Tensor& weights, const std::string& what) const {
  const bool is_mean = values.defined() && values.dim() == 0;
  const bool is_each = values.defined() && values.dim() == 1 && values.size(0) == shard.samples;
  if (!is_mean && !is_each) {
    refuse(
        fmt::format("the {} returned a tensor of shape {} for {} samples; return the mean over the samples, a scalar, "
                    "or a value for each sample",
                    what, values.defined() ? described(values) : "undefined", shard.samples));
  }
  if (is_mean && weights.defined()) {
    refuse(
        fmt::format("the {} returned a scalar, and the samples have weights; return a value for each sample "
                    "(Reduction::None)",
                    what));
  }
  const at::Tensor floats = values.detach().to(at::kFloat);
  if (is_mean) return {floats, static_cast<float>(shard.samples)};
  return {(weights.defined() ? floats * weights : floats).sum()};
}

std::vector<Reading> AnyTrainableModule::Implementation::sums_of(const Outputs& outputs, const at::Tensor& loss,
                                                                 const Batch& batch, const ShardBatch& shard) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor weights = weights_of(shard);
  std::vector<Reading> sums{sum_of(loss, shard, weights, "loss")};
  for (const Metric& metric : functions.metrics) {
    const at::Tensor values =
        with_errors_of_torch(metric.name.c_str(), [&] { return metric.function(outputs, batch); });
    sums.push_back(sum_of(values, shard, weights, fmt::format("metric \"{}\"", metric.name)));
  }
  if (weights.defined()) sums.push_back({weights.sum()});
  return sums;
}

std::vector<float> AnyTrainableModule::Implementation::read(std::span<const Reading> readings) const {
  std::vector<float> numbers;
  if (!device) {
    for (const Reading& reading : readings) numbers.push_back(reading.number.item<float>() * reading.factor);
    return numbers;
  }
  // Holdfast waits for them, since LibTorch's own waits have no deadline.
  std::vector<at::Tensor> there;
  for (const Reading& reading : readings) there.push_back(reading.number.to(place(), at::kFloat).reshape({}));
  const at::Tensor all = at::stack(there);
  numbers.resize(readings.size());
  memory().copy_to_host({all.data_ptr<float>(), numbers.size()}, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] *= readings[i].factor;
  return numbers;
}

void AnyTrainableModule::Implementation::write_gradients(const std::vector<at::Tensor>& computed,
                                                         std::span<float> gradients) const {
  const at::NoGradGuard no_gradients;
  std::vector<float> used;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const std::span<float> to = arrays->parameters.view(gradients.first(parameter_floats), i);
    used.push_back(computed[i].defined() ? 1.0F : 0.0F);
    if (to.empty()) continue;
    if (!computed[i].defined()) {
      memory().fill_zero(to);
      continue;
    }
    // Those of an Embedding may be sparse.
    const at::Tensor whole = (computed[i].is_sparse() ? computed[i].to_dense() : computed[i]).contiguous();
    if (device) {
      tensor_at(to.data(), whole.sizes(), at::kFloat, place()).copy_(whole);
    } else {
      std::memcpy(to.data(), whole.data_ptr<float>(), to.size_bytes());
    }
  }
  store(used, gradients.subspan(parameter_floats, used.size()));
}

// Looks for an end of the generation between the passes: within one, LibTorch calls nothing of ours.
void AnyTrainableModule::Implementation::train_shard(const ShardBatch& shard, std::span<float> gradients,
                                                     std::span<float> sums) {
  shard.check_cancelled();
  WorkerModule& module = worker(shard);
  const Batch batch = batch_of(shard);
  module.set_training(true);
  module.set_buffers(buffers.span(), shard.step);
  const std::vector<std::int64_t> versions = versions_of_inputs(batch, functions.inputs.size());
  const Outputs outputs = with_errors_of_torch("forward()", [&] { return functions.forward(module.module(), batch); });
  shard.check_cancelled();
  const at::Tensor loss = with_errors_of_torch("the loss", [&] { return functions.loss(outputs, batch); });
  std::vector<Reading> readings = sums_of(outputs, loss, batch, shard);
  require_same_inputs(batch, functions.inputs, versions);
  shard.check_cancelled();
  // The shard's summand of the gradient of the batch's mean loss.
  const at::Tensor weights = weights_of(shard);
  const double part =
      static_cast<double>(loss.dim() == 0 ? shard.samples : 1) / static_cast<double>(shard.batch_samples);
  const at::Tensor scale = weights.defined() ? weights : at::full(loss.sizes(), part, loss.options());
  const auto of_parameters = with_errors_of_torch("the backward pass", [&] {
    return ::torch::autograd::grad({loss}, module.parameters(), {scale}, false, false, true);
  });
  with_errors_of_torch("the copy of the gradients", [&] { write_gradients(of_parameters, gradients); });
  const auto part_of_batch =
      static_cast<float>(static_cast<double>(shard.samples) / static_cast<double>(shard.batch_samples));
  const auto buffers_of_shard = gradients.subspan(parameter_floats + of_parameters.size());
  for (const at::Tensor& counted : module.counted()) readings.push_back({counted});
  const std::vector<float> numbers = with_errors_of_torch("the results", [&] { return read(readings); });
  if (const std::string change = module.forbidden_change(std::span(numbers).subspan(sums.size())); !change.empty()) {
    throw Error(ErrorCode::unsupported, fmt::format("forward() of the module changed {}", change));
  }
  module.write_changed_buffers(buffers_of_shard, buffers.span(), part_of_batch);
  std::copy_n(numbers.begin(), sums.size(), sums.begin());
}

// The draws of a shard are a function of its position.
void AnyTrainableModule::Implementation::seed_and_train(const ShardBatch& shard, std::span<float> gradients,
                                                        std::span<float> sums) {
  const ShardScope position(
      {.seed = shard.seed, .step = shard.step, .first_sample = shard.first_sample, .samples = shard.samples});
  if (!functions.draws) return train_shard(shard, gradients, sums);
  const std::scoped_lock lock(generator_lock());
  ::torch::manual_seed(seed_of_shard(shard.seed, shard.step, shard.first_sample));
  train_shard(shard, gradients, sums);
}

// The first is that of the process, and a second one that of the device.
std::vector<at::Tensor> AnyTrainableModule::Implementation::generator_states() const {
  std::vector<at::Device> places{at::kCPU};
  if (!place().is_cpu()) places.push_back(place());
  std::vector<at::Tensor> states;
  for (const at::Device of : places) {
    at::Generator generator = at::globalContext().defaultGenerator(of);
    const std::scoped_lock lock(generator.mutex());
    states.push_back(generator.get_state());
  }
  return states;
}

bool AnyTrainableModule::Implementation::differ(std::span<const float> a, std::span<const float> b) const {
  if (!device) return std::memcmp(a.data(), b.data(), a.size_bytes()) != 0;
  return memory().digest_of(std::span(&a, 1)) != memory().digest_of(std::span(&b, 1));
}

// Computes the first shard of a run twice: a module that remembers earlier calls, or draws where Holdfast cannot see
// it, computes something else for the same shard.
void AnyTrainableModule::Implementation::train_twice(const ShardBatch& shard, std::span<float> gradients,
                                                     std::span<float> sums) {
  // Before the run, each worker computes this shard. The module that one makes draws, which another would take for a
  // draw of forward().
  const std::scoped_lock one_at_a_time(first_shard);
  const std::shared_ptr<float[]> memory_of_other = memory().allocate(gradients.size());
  const std::span<float> other(memory_of_other.get(), gradients.size());
  std::vector<float> other_sums(sums.size());
  // Where no module draws, the generators stay as they are.
  const std::vector<at::Tensor> before = functions.draws ? std::vector<at::Tensor>() : generator_states();
  seed_and_train(shard, other, other_sums);
  worker(shard).require_arrays_as_made();
  const std::vector<at::Tensor> after = functions.draws ? std::vector<at::Tensor>() : generator_states();
  if (!std::ranges::equal(before, after, [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); })) {
    throw Error(
        ErrorCode::invalid_argument,
        "forward() of the module drew from LibTorch's generator, and TrainableOptions::draws is false; leave it "
        "true, or use holdfast::torch::Dropout");
  }
  seed_and_train(shard, gradients, sums);
  const bool are_sums_same = std::memcmp(sums.data(), other_sums.data(), sums.size_bytes()) == 0;
  std::string name = are_sums_same ? "" : "its loss or metrics";
  for (std::size_t i = 0; i < arrays->parameters.entries().size() && name.empty(); ++i) {
    if (differ(arrays->parameters.view(gradients.first(parameter_floats), i),
               arrays->parameters.view(other.first(parameter_floats), i))) {
      name = fmt::format("the gradient of \"{}\"", arrays->parameters.entries()[i].name);
    }
  }
  if (name.empty() && differ(gradients.subspan(parameter_floats), other.subspan(parameter_floats))) {
    name = "a buffer";
  }
  if (name.empty()) return check_hidden_state(shard);
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the module computed the same shard twice, and {} differed: it remembers earlier calls, or draws "
                  "from a generator of its own. A step that is repeated after a failure would give other weights. "
                  "Keep such state in buffers of f32, and draw with LibTorch's generator",
                  name));
}

// What a module keeps may show in one mode alone. A module that is made anew has kept nothing, as one of a replica that
// was replaced.
void AnyTrainableModule::Implementation::check_hidden_state(const ShardBatch& shard) {
  const at::NoGradGuard no_gradients;
  const Batch batch = batch_of(shard);
  std::unique_lock<std::mutex> lock(generator_lock());
  WorkerModule other(made_module(), *arrays);
  lock.unlock();
  if (device) other.move_to(place());
  other.view(parameters.span(), frozen.span());
  for (const bool is_training : {true, false}) {
    const Outputs kept = forward_alone(worker(shard), shard, batch, is_training);
    const Outputs made = forward_alone(other, shard, batch, is_training);
    if (have_same_bits(kept, made)) continue;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("after a step, forward() of the module in {}() returned something else than that of a module which "
                    "was made anew and has the same parameters and buffers: it remembers earlier calls, or the "
                    "function `module` does not make the same module each time. A replica that is replaced would lose "
                    "what it remembers. Keep such state in buffers of f32",
                    is_training ? "train" : "eval"));
  }
}

bool AnyTrainableModule::Implementation::have_same_bits(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) return false;
  // With a deadline, which LibTorch's copies lack.
  memory().wait();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor of_a = a[i].cpu().contiguous();
    const at::Tensor of_b = b[i].cpu().contiguous();
    if (of_a.sizes() != of_b.sizes() || of_a.scalar_type() != of_b.scalar_type()) return false;
    if (of_a.nbytes() > 0 && std::memcmp(of_a.data_ptr(), of_b.data_ptr(), of_a.nbytes()) != 0) return false;
  }
  return true;
}

// A module may draw in eval(), too: a function of (seed, step, shard) then as well.
Outputs AnyTrainableModule::Implementation::forward_alone(WorkerModule& module, const ShardBatch& shard,
                                                          const Batch& batch, bool is_training) {
  std::unique_lock<std::mutex> lock;
  if (functions.draws) lock = std::unique_lock(generator_lock());
  shard.check_cancelled();
  const ShardScope position(
      {.seed = shard.seed, .step = shard.step, .first_sample = shard.first_sample, .samples = shard.samples});
  if (functions.draws) ::torch::manual_seed(seed_of_shard(shard.seed, shard.step, shard.first_sample));
  module.set_training(is_training);
  module.set_buffers(buffers.span(), shard.step);
  return with_errors_of_torch("forward()", [&] { return functions.forward(module.module(), batch); });
}

// Shapes were found with two samples of zeros, and the Trainer has laid out its memory for them.
Outputs AnyTrainableModule::Implementation::infer(const ShardBatch& shard, const Batch& batch) {
  Outputs outputs = forward_alone(worker(shard), shard, batch, false);
  bool are_as_before = outputs.size() == output_specs.size();
  for (std::size_t i = 0; i < output_specs.size() && are_as_before; ++i) {
    std::vector<std::int64_t> sizes{shard.samples};
    for (const std::int64_t extent : output_specs[i].shape.extents()) sizes.push_back(extent);
    are_as_before =
        outputs[i].defined() && outputs[i].scalar_type() == at::kFloat && outputs[i].sizes() == at::IntArrayRef(sizes);
  }
  if (!are_as_before) {
    refuse(
        fmt::format("forward() returned other outputs for {} samples than for two samples of zeros; return the same "
                    "number of tensors of f32 with the same shape of a sample",
                    shard.samples));
  }
  return outputs;
}

}  // namespace holdfast::torch
