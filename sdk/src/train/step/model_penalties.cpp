// The penalties of regularizers, and constraints. They depend on the parameters alone, so they are not part of any
// shard: each rank computes the same numbers, and adds the same gradient to the sum over all shards.
// docs/decisions/losses.md

#include <array>
#include <cmath>

#include "holdfast/nn/functions.h"
#include "nn/model/description.h"
#include "nn/model/orthogonal_penalty.h"
#include "optim/update_description.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

// Inputs: the gradient and the parameter; output: the gradient with that of the penalty.
compute::ElementProgram program_of(const Regularizer& regularizer) {
  const Value gradient = update_argument("gradient");
  const Value parameter = update_argument("parameter");
  Value sum = gradient;
  if (regularizer.l1_factor() > 0) sum = sum + sign(parameter) * regularizer.l1_factor();
  if (regularizer.l2_factor() > 0) sum = sum + parameter * (2 * regularizer.l2_factor());
  return compile_update(
      {.optimizer = "regularizer", .arguments = {gradient, parameter}, .numbers = {}, .results = {sum}});
}

// In double and in the order of the elements, so each rank and each device has the same bits.
double penalty_of(const Regularizer& regularizer, const Shape& shape, std::span<const float> weights) {
  if (regularizer.orthogonal_factor() > 0) return OrthogonalPenalty(regularizer, shape, weights).value();
  double absolute = 0;
  double squares = 0;
  for (const float weight : weights) {
    absolute += std::abs(static_cast<double>(weight));
    squares += static_cast<double>(weight) * static_cast<double>(weight);
  }
  return regularizer.l1_factor() * absolute + regularizer.l2_factor() * squares;
}

// The host computes it. On a device it needs copies of both arrays.
void add_orthogonal_gradient(MemorySpace& memory, const Regularizer& regularizer, const Shape& shape,
                             std::span<const float> weights, std::span<float> gradient) {
  if (memory.is_host()) return OrthogonalPenalty(regularizer, shape, weights).add_gradient(gradient);
  std::vector<float> weights_here(weights.size()), gradient_here(gradient.size());
  memory.copy_to_host(weights, weights_here);
  memory.copy_to_host(gradient, gradient_here);
  OrthogonalPenalty(regularizer, shape, weights_here).add_gradient(gradient_here);
  memory.copy_from_host(gradient_here, gradient);
}

}  // namespace

// Frozen weights lie among the buffers, so they have no entry here and no penalty.
void ModelTrainable::prepare_penalties() {
  penalties_.clear();
  const std::vector<WeightStart>& starts = model_.description()->parameter_starts;
  for (std::size_t entry = 0; entry < starts.size(); ++entry) {
    const Regularizer& regularizer = starts[entry].regularizer;
    if (regularizer.is_none()) continue;
    const bool has_program = regularizer.orthogonal_factor() == 0;
    penalties_.push_back({entry, regularizer, has_program ? program_of(regularizer) : compute::ElementProgram{}});
  }
}

// A device's parameters are copied, which takes time in each step, and no kernel of its own.
double ModelTrainable::penalty() {
  double sum = 0;
  std::vector<float> copy;
  for (const Penalty& one : penalties_) {
    std::span<const float> array = model_.parameters().view(weights(), one.entry);
    if (!memory().is_host()) {
      copy.resize(array.size());
      memory().copy_to_host(array, copy);
      array = copy;
    }
    sum += penalty_of(one.regularizer, model_.parameters().entries()[one.entry].shape, array);
  }
  return sum;
}

std::span<const float> ModelTrainable::with_penalties(std::span<const float> gradients) {
  if (penalties_.empty()) return gradients;
  // The division by sample weights may have put them there already.
  if (own_gradients_.floats == nullptr || gradients.data() != own_gradients_.floats.get()) {
    // The sum lies in memory that other ranks are still reading.
    if (!own_gradients_.floats) own_gradients_ = {memory().allocate(gradients.size()), gradients.size()};
    memory().copy(gradients, own_gradients_.span());
  }
  for (const Penalty& one : penalties_) {
    const std::span<float> sum = model_.parameters().view(own_gradients_.span(), one.entry);
    const std::span<float> array = model_.parameters().view(parameters_.span(), one.entry);
    if (one.regularizer.orthogonal_factor() > 0) {
      add_orthogonal_gradient(memory(), one.regularizer, model_.parameters().entries()[one.entry].shape, array, sum);
      continue;
    }
    compute::ElementShape shape;
    shape.extents[0] = static_cast<std::int64_t>(sum.size());
    shape.strides[0][0] = shape.strides[1][0] = 1;
    const std::array<const float*, 2> inputs{sum.data(), array.data()};
    const std::array<float*, 1> outputs{sum.data()};
    workers_.front().program->backend().array_kernels().elements(one.gradient, shape, inputs, outputs);
  }
  return own_gradients_.span();
}

// Gives every rank the same weights, as an update does.
void ModelTrainable::constrain_parameters() {
  const std::vector<WeightStart>& starts = model_.description()->parameter_starts;
  std::vector<float> copy;
  for (std::size_t entry = 0; entry < starts.size(); ++entry) {
    const Constraint& constraint = starts[entry].constraint;
    if (constraint.is_none()) continue;
    const std::span<float> array = model_.parameters().view(parameters_.span(), entry);
    const Shape& shape = model_.parameters().entries()[entry].shape;
    if (memory().is_host()) {
      constraint.apply(shape, array);
      continue;
    }
    copy.resize(array.size());
    memory().copy_to_host(array, copy);
    constraint.apply(shape, copy);
    memory().copy_from_host(copy, array);
  }
}

}  // namespace holdfast
