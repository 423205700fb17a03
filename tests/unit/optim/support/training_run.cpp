#include "unit/optim/support/training_run.h"

#include <algorithm>
#include <cmath>

#include "holdfast/core/random.h"

namespace holdfast {

Deviation largest_deviation(const Optimizer& optimizer, const ReferenceUpdate& reference) {
  constexpr std::size_t kElements = 67;
  constexpr std::int64_t kSteps = 100;
  const std::size_t slot_count = optimizer.slot_names().size();
  std::vector<float> parameters(kElements);
  std::vector<std::vector<float>> slots(slot_count, std::vector<float>(kElements));
  const std::vector<std::span<float>> slot_spans(slots.begin(), slots.end());
  std::vector<double> initial_slots;
  for (std::size_t slot = 0; slot < slot_count; ++slot) {
    std::fill(slots[slot].begin(), slots[slot].end(), optimizer.initial_value_of_slot(slot));
    initial_slots.push_back(optimizer.initial_value_of_slot(slot));
  }
  std::vector<ReferenceElement> elements;
  Random initial(1, Purpose::user, 0, 0);
  for (float& parameter : parameters) {
    parameter = 2 * initial.uniform() - 1;
    elements.push_back({.parameter = parameter, .slots = initial_slots});
  }

  Deviation deviation;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    Random random(2, Purpose::user, static_cast<std::uint64_t>(step), 0);
    std::vector<float> gradients(kElements);
    for (float& gradient : gradients) gradient = 2 * random.uniform() - 1;
    optimizer.update(step, parameters, gradients, slot_spans);
    for (std::size_t i = 0; i < kElements; ++i) {
      reference(step, gradients[i], elements[i]);
      deviation.parameter = std::max(deviation.parameter, std::abs(parameters[i] - elements[i].parameter));
      deviation.largest_parameter = std::max(deviation.largest_parameter, std::abs(elements[i].parameter));
    }
  }
  return deviation;
}

}  // namespace holdfast
