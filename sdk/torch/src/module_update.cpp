// What the sums of all shards do to the arenas: the optimizer's step, of Holdfast or of LibTorch, and the buffers that
// shards changed. docs/decisions/torch.md

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <span>
#include <vector>

#include "module_training.h"
#include "optim/update_pass.h"
#include "torch_device.h"
#include "torch_errors.h"
#include "train/step/outputs/output_sums.h"

namespace holdfast::torch {

std::span<const float> AnyTrainableModule::Implementation::final_gradients(const Update& update) {
  std::span<const float> gradients = update.gradients.first(parameter_floats);
  if (update.is_weighted) {
    if (!divided.floats) divided = {memory().allocate(parameter_floats), parameter_floats};
    divide(*backend, gradients, update.weight, divided.span(), update.passes);
    gradients = divided.span();
  }
  // Clipped after the division: a limit is one of the gradient of the mean.
  return clipper ? clipper->clip(gradients, update.passes) : gradients;
}

// Holdfast's optimizers share their passes among the threads of the shards. LibTorch's have threads of their own.
void AnyTrainableModule::Implementation::update_parameters(const Update& update) {
  const std::span<const float> gradients = final_gradients(update);
  if (optimizer) return step_of_torch(update, gradients);
  const std::unique_ptr<Optimizer> changed =
      update.learning_rate ? functions.optimizer->with_learning_rate(*update.learning_rate) : nullptr;
  const Optimizer& own = changed ? *changed : *functions.optimizer;
  const UpdateArrays all{parameters.span(), gradients, slot_spans};
  if (grouped) return grouped->update(*backend, own, update.learning_rate, update.step, all, update.passes);
  update_arrays(*backend, own, update.step, all, update.passes);
}

// Which parameters were used decides what LibTorch is asked for, so the host waits for these marks.
void AnyTrainableModule::Implementation::step_of_torch(const Update& update, std::span<const float> gradients) {
  use_threads(threads);
  std::vector<float> used(counts.size);
  std::vector<float> updates(counts.size);
  memory().copy_to_host(update.gradients.subspan(parameter_floats, counts.size), used);
  memory().copy_to_host(counts.span(), updates);
  with_errors_of_torch("the update", [&] {
    optimizer->step(update.step, gradients, {.used = used, .updates = updates}, update.learning_rate);
  });
  store(updates, counts.span());
}

// A buffer that no shard changed keeps its bits. If all shards changed it, their parts of the batch add up to 1, but
// for rounding.
void AnyTrainableModule::Implementation::update_buffers(std::span<const float> tail) {
  const std::span<const float> sums = tail.subspan(arrays->parameters.entries().size(), buffer_floats);
  const std::span<const float> changed = tail.subspan(arrays->parameters.entries().size() + buffer_floats);
  if (device) return with_errors_of_torch("the update", [&] { queue_update_of_buffers(sums, changed); });
  for (std::size_t i = 0; i < arrays->buffers.entries().size(); ++i) {
    if (changed[i] == 0) continue;
    const float kept = 1 - changed[i];
    const std::span<const float> sum = arrays->buffers.view(sums, i);
    const std::span<float> buffer = arrays->buffers.view(buffers.span(), i);
    for (std::size_t element = 0; element < buffer.size(); ++element) {
      buffer[element] = kept < 1e-6F ? sum[element] : sum[element] + kept * buffer[element];
    }
  }
}

// The same, element by element.
void AnyTrainableModule::Implementation::queue_update_of_buffers(std::span<const float> sums,
                                                                 std::span<const float> changed) const {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < arrays->buffers.entries().size(); ++i) {
    const auto count = static_cast<std::int64_t>(arrays->buffers.entries()[i].element_count());
    if (count == 0) continue;
    const auto array = [&](std::span<const float> of) { return tensor_at(of.data(), {count}, at::kFloat, place()); };
    const at::Tensor sum = array(arrays->buffers.view(sums, i));
    const at::Tensor buffer = array(arrays->buffers.view(buffers.span(), i));
    const at::Tensor share = tensor_at(&changed[i], {}, at::kFloat, place());
    const at::Tensor kept = 1 - share;
    const at::Tensor mixed = at::where(kept < 1e-6F, sum, sum + kept * buffer);
    buffer.copy_(at::where(share == 0, buffer, mixed));
  }
}

}  // namespace holdfast::torch
