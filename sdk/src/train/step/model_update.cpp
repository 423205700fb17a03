// An update of a ModelTrainable: the gradient as the optimizer takes it, the optimizer's pass over the arenas, and what
// follows from the parameters that it made. All ranks do the same with the same sums. docs/decisions/optimizers.md

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <typeinfo>

#include "holdfast/base/error.h"
#include "optim/update_pass.h"
#include "train/step/model_trainable.h"

namespace holdfast {

std::span<const float> ModelTrainable::final_gradients(const Update& update) {
  std::span<const float> gradients = update.gradients.first(parameters_.size);
  if (update.is_weighted) {
    // Into an array of its own: the sum lies in memory that other ranks are still reading.
    Arena& divided = own_gradients_;
    if (!divided.floats) divided = {memory().allocate(parameters_.size), parameters_.size};
    divide(workers_.front().program->backend(), gradients, update.weight, divided.span(), update.passes);
    gradients = divided.span();
  }
  gradients = with_penalties(gradients);
  return clipper_ ? clipper_->clip(gradients, update.passes) : gradients;
}

std::optional<float> ModelTrainable::learning_rate(std::int64_t update) const {
  const std::optional<LearningRate> rate = optimizer_->learning_rate();
  return rate ? std::optional(rate->of_update(update - first_step_)) : std::nullopt;
}

void ModelTrainable::check_learning_rate(float rate) const {
  const std::optional<LearningRate> own = optimizer_->learning_rate();
  if (own && !own->constant()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a callback sets the learning rate {}, and that of the optimizer {} follows a schedule, "
                            "which would be lost; give the optimizer a number, or leave the callback out",
                            rate, optimizer_->name()));
  }
  require_changeable_rate("a callback sets", rate);
}

void ModelTrainable::require_changeable_rate(const char* who, std::optional<float> rate) const {
  const std::string what =
      rate ? fmt::format("{} the learning rate {}", who, *rate) : fmt::format("{} the learning rate", who);
  if (!optimizer_->learning_rate()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}, and the optimizer {} has none that callbacks may change; override its "
                            "learning_rate() and with_learning_rate()",
                            what, optimizer_->name()));
  }
  // Throws for a rate that is negative or not finite.
  const std::unique_ptr<Optimizer> changed = optimizer_->with_learning_rate(rate.value_or(0));
  const Optimizer& optimizer = *optimizer_;
  const Optimizer* const other = changed.get();
  // A class that derives from one of Holdfast's would lose what it adds.
  if (other != nullptr && typeid(*other) == typeid(optimizer)) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}, and the optimizer {} is of a class that derives from another one without overriding "
                          "with_learning_rate(); override it",
                          what, optimizer_->name()));
}

// Made once for a rate, since a step allocates nothing.
const Optimizer& ModelTrainable::optimizer_of(const Update& update) {
  if (!update.learning_rate) return *optimizer_;
  ChangedOptimizer& changed = changed_optimizer_;
  if (changed.optimizer == nullptr || changed.rate != *update.learning_rate) {
    changed = {*update.learning_rate, optimizer_->with_learning_rate(*update.learning_rate)};
  }
  return *changed.optimizer;
}

void ModelTrainable::apply_update(const Update& update) {
  // All samples are masked: there is no mean.
  if (update.is_weighted && update.weight == 0) return;
  const std::span<const float> gradients = final_gradients(update);
  // One worker is enough: an update is one pass over the arenas, not one for each shard.
  ModelProgram& program = *workers_.front().program;
  const Optimizer& optimizer = optimizer_of(update);
  const std::int64_t step = update.step - first_step_;
  const UpdateArrays arrays{parameters_.span(), gradients, slot_spans_};
  if (grouped_) {
    grouped_->update(program.backend(), optimizer, update.learning_rate, step, arrays, update.passes);
  } else {
    update_arrays(program.backend(), optimizer, step, arrays, update.passes);
  }
  if (averaging_) {
    const std::span<float> averages = slots_.back().span();
    update_arrays(program.backend(), *averaging_, step, {averages, parameters_.span(), {}}, update.passes);
    const std::int64_t frequency = optimizer_->weight_average().overwrite_frequency;
    if (frequency > 0 && step % frequency == 0) memory().copy(averages, parameters_.span());
  }
  // Constraints come last, as in Keras, so averages are those of unconstrained weights.
  constrain_parameters();
  const std::span<const float> contributions = update.gradients.subspan(parameters_.size);
  if (contributions.empty()) return;
  // A pass that is the same in each step, so it can be recorded, too. No key of a shard begins with this number.
  constexpr std::uint64_t kBuffers = std::numeric_limits<std::uint64_t>::max();
  const std::array<std::uint64_t, 3> key{kBuffers, reinterpret_cast<std::uintptr_t>(contributions.data()),
                                         reinterpret_cast<std::uintptr_t>(buffers_.floats.get())};
  const auto update_buffers = [&] { program.update_buffers(contributions, buffers_.span()); };
  program.backend().repeat(key, std::ref(update_buffers));
}

}  // namespace holdfast
