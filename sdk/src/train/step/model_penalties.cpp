// The penalties of regularizers. They depend on the parameters alone, so they are no part of any shard: each rank
// computes the same number, and adds the same gradient to the sum over all shards. docs/decisions/training.md

#include <array>
#include <cmath>
#include <functional>

#include "holdfast/nn/functions.h"
#include "nn/model/description.h"
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

double penalty_of(const Regularizer& regularizer, std::span<const float> weights) {
  double absolute = 0;
  double squares = 0;
  for (const float weight : weights) {
    absolute += std::abs(static_cast<double>(weight));
    squares += static_cast<double>(weight) * static_cast<double>(weight);
  }
  return regularizer.l1_factor() * absolute + regularizer.l2_factor() * squares;
}

}  // namespace

// A function that held a copy of what it calls would take memory in each step: callers pass a reference.
void ModelTrainable::for_each_penalty(
    const std::function<void(std::size_t entry, const Regularizer& regularizer)>& use) const {
  const std::vector<WeightStart>& starts = model_.description()->parameter_starts;
  for (std::size_t entry = 0; entry < starts.size(); ++entry) {
    if (!starts[entry].regularizer.is_none()) use(entry, starts[entry].regularizer);
  }
}

// A device's parameters are copied, which takes time in each step, and no kernel of its own.
double ModelTrainable::penalty() {
  double sum = 0;
  std::vector<float> copy;
  const auto add = [&](std::size_t entry, const Regularizer& regularizer) {
    std::span<const float> weights = model_.parameters().view(std::span<const float>(parameters_.span()), entry);
    if (!memory().is_host()) {
      copy.resize(weights.size());
      memory().copy_to_host(weights, copy);
      weights = copy;
    }
    sum += penalty_of(regularizer, weights);
  };
  for_each_penalty(std::ref(add));
  return sum;
}

std::span<const float> ModelTrainable::with_penalties(std::span<const float> gradients) {
  bool is_own = own_gradients_.floats != nullptr && gradients.data() == own_gradients_.floats.get();
  const auto add = [&](std::size_t entry, const Regularizer& regularizer) {
    if (!is_own) {
      // The sum lies in memory that other ranks are still reading.
      if (!own_gradients_.floats) own_gradients_ = {memory().allocate(gradients.size()), gradients.size()};
      memory().copy(gradients, own_gradients_.span());
      gradients = own_gradients_.span();
      is_own = true;
    }
    const std::span<float> sum = model_.parameters().view(own_gradients_.span(), entry);
    const std::span<const float> weights = model_.parameters().view(std::span<const float>(parameters_.span()), entry);
    compute::ElementShape shape;
    shape.extents[0] = static_cast<std::int64_t>(sum.size());
    shape.strides[0][0] = shape.strides[1][0] = 1;
    const std::array<const float*, 2> inputs{sum.data(), weights.data()};
    const std::array<float*, 1> outputs{sum.data()};
    workers_.front().program->backend().array_kernels().elements(program_of(regularizer), shape, inputs, outputs);
  };
  for_each_penalty(std::ref(add));
  return gradients;
}

}  // namespace holdfast
