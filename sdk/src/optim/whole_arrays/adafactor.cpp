// The factors of an array are means over its rows and columns, so an update takes three passes: new factors, the size
// of the step, the step. Sums are of doubles in the order of the elements, which is a function of the shape alone. The
// slots repeat each factor along the axis that it lacks, so a factor is read at the first element that has it.

#include "holdfast/optim/adafactor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "holdfast/base/error.h"
#include "optim/rule_options.h"

namespace holdfast {
namespace {

// The last two axes of an array, and how many of such matrices it has.
struct Matrices {
  std::size_t count = 1;
  std::size_t rows = 1;
  std::size_t columns = 1;
};

Matrices matrices_of(const Shape& shape) {
  const auto& extents = shape.extents();
  Matrices matrices;
  matrices.columns = static_cast<std::size_t>(extents[extents.size() - 1]);
  matrices.rows = static_cast<std::size_t>(extents[extents.size() - 2]);
  const std::size_t each = std::max<std::size_t>(1, matrices.rows * matrices.columns);
  matrices.count = static_cast<std::size_t>(shape.element_count()) / each;
  return matrices;
}

// The numbers of an update.
struct FactoredStep {
  float kept = 1;        // of the parameters, by weight decay
  float rate = 0;        // without the scale of the parameters
  double old_share = 0;  // b
  double epsilon = 0;    // of squares
  double least_scale = 0;
  double threshold = 1;
};

// 0 and not a NaN for no elements, since a NaN would become the scale of the step.
double root_mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Epsilon keeps the factors of a row or column without gradients above 0, so the quotients below stay finite.
double regulated_square(float gradient, double epsilon) {
  return static_cast<double>(gradient) * static_cast<double>(gradient) + epsilon;
}

// Computed in double and rounded once: in float, 1 - b would lose digits as b comes near 1.
float blended(float old, double mean, double old_share) {
  return static_cast<float>(old_share * static_cast<double>(old) + (1 - old_share) * mean);
}

// Writes the factors of one matrix to both slots.
void update_factors(const Matrices& of, const FactoredStep& step, std::span<const float> gradients,
                    std::span<float> row_slot, std::span<float> column_slot, std::vector<double>& sums) {
  sums.assign(of.columns, 0);
  for (std::size_t row = 0; row < of.rows; ++row) {
    const std::size_t begin = row * of.columns;
    double sum = 0;
    for (std::size_t column = 0; column < of.columns; ++column) {
      const double squared = regulated_square(gradients[begin + column], step.epsilon);
      sum += squared;
      sums[column] += squared;
    }
    const float factor = blended(row_slot[begin], sum / static_cast<double>(of.columns), step.old_share);
    std::fill_n(row_slot.begin() + static_cast<std::ptrdiff_t>(begin), of.columns, factor);
  }
  for (std::size_t column = 0; column < of.columns; ++column) {
    column_slot[column] = blended(column_slot[column], sums[column] / static_cast<double>(of.rows), step.old_share);
  }
  for (std::size_t row = 1; row < of.rows; ++row) {
    std::copy_n(column_slot.begin(), of.columns, column_slot.begin() + static_cast<std::ptrdiff_t>(row * of.columns));
  }
}

// Calls `use(i, u)` for each element of one matrix with its direction.
template <class Use>
void for_directions(const Matrices& of, std::span<const float> gradients, std::span<const float> row_slot,
                    std::span<const float> column_slot, const Use& use) {
  double sum = 0;
  for (std::size_t row = 0; row < of.rows; ++row) sum += static_cast<double>(row_slot[row * of.columns]);
  const double mean = sum / static_cast<double>(of.rows);
  for (std::size_t row = 0; row < of.rows; ++row) {
    const double share = static_cast<double>(row_slot[row * of.columns]) / mean;
    for (std::size_t column = 0; column < of.columns; ++column) {
      const std::size_t i = row * of.columns + column;
      use(i, static_cast<double>(gradients[i]) / std::sqrt(share * static_cast<double>(column_slot[column])));
    }
  }
}

template <class Use>
void for_directions(std::span<const float> gradients, std::span<const float> velocities, const Use& use) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    use(i, static_cast<double>(gradients[i]) / std::sqrt(static_cast<double>(velocities[i])));
  }
}

// `each(use)` calls use(i, u) for all elements. Parameters have decayed already. Directions are computed twice, for the
// size and for the step: keeping them would take an array as large as the parameters.
template <class Each>
void make_step(const FactoredStep& step, double scale, std::span<float> parameters, const Each& each) {
  double squares = 0;
  each([&](std::size_t, double direction) { squares += direction * direction; });
  const double size = std::sqrt(squares / static_cast<double>(parameters.size()));
  const double rate = step.rate * scale / std::max(1.0, size / step.threshold);
  each([&](std::size_t i, double direction) {
    parameters[i] = static_cast<float>(static_cast<double>(parameters[i]) - rate * direction);
  });
}

}  // namespace

Adafactor::Adafactor(const AdafactorOptions& options) : options_(options) {
  check_rule_options(name(), options);
  const auto check = [this](const char* option, float value, bool is_in_range, const char* range) {
    check_option(name(), option, value, is_in_range, range);
  };
  check("beta_2_decay", options.beta_2_decay, options.beta_2_decay < 0, "negative");
  // Without it, an element that never had a gradient would become 0 / 0.
  check("epsilon_1", options.epsilon_1, options.epsilon_1 > 0, "positive");
  check("epsilon_2", options.epsilon_2, options.epsilon_2 >= 0, "not negative");
  check("clip_threshold", options.clip_threshold, options.clip_threshold > 0, "positive");
}

// A savepoint holds this text, and a resume compares it. So its members and their order are data.
std::string Adafactor::configuration() const {
  JsonObject object(name());
  object.value("learning_rate", options_.learning_rate.configuration())
      .number("beta_2_decay", options_.beta_2_decay)
      .number("epsilon_1", options_.epsilon_1)
      .number("epsilon_2", options_.epsilon_2)
      .number("clip_threshold", options_.clip_threshold)
      .number("weight_decay", options_.weight_decay);
  add_clipping(object, clipping());
  add_rules(object, rules_of(options_));
  add_average(object, weight_average());
  return object.text();
}

std::unique_ptr<Optimizer> Adafactor::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Adafactor>(options_, rate);
}

GradientClipping Adafactor::clipping() const {
  return clipping_of(options_);
}

ParameterRules Adafactor::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Adafactor::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Adafactor::with_weight_decay_times(float factor) const {
  return with_decay_times<Adafactor>(options_, factor);
}

std::vector<std::string> Adafactor::slot_names() const {
  return {"row_velocity", "column_velocity"};
}

void Adafactor::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                       std::span<const std::span<float>> slots) const {
  const Shape shape{static_cast<std::int64_t>(parameters.size())};
  update_array({.name = {}, .shape = &shape}, step, parameters, gradients, slots);
}

void Adafactor::update_array(const ParameterArray& array, std::int64_t step, std::span<float> parameters,
                             std::span<const float> gradients, std::span<const std::span<float>> slots) const {
  HOLDFAST_ASSERT(step >= 1 && slots.size() == 2 && gradients.size() == parameters.size());
  const auto elements = static_cast<std::size_t>(array.shape->element_count());
  HOLDFAST_ASSERT(parameters.size() >= elements && slots[0].size() == parameters.size());
  if (elements == 0) return;
  // What follows is padding, which must stay zero.
  parameters = parameters.first(elements);
  gradients = gradients.first(elements);
  const std::span<float> row_slot = slots[0].first(elements), column_slot = slots[1].first(elements);
  const double count = static_cast<double>(step);
  const float rate = options_.learning_rate.of_update(step);
  // At step 1, old_share is 0: the zeros of new slots have no weight, so no bias correction is needed.
  const FactoredStep numbers{.kept = static_cast<float>(kept_of(options_.weight_decay, rate)),
                             .rate = static_cast<float>(std::min(static_cast<double>(rate), 1 / std::sqrt(count))),
                             .old_share = 1 - std::pow(count, static_cast<double>(options_.beta_2_decay)),
                             .epsilon = options_.epsilon_1,
                             .least_scale = options_.epsilon_2,
                             .threshold = options_.clip_threshold};
  if (options_.weight_decay > 0) {
    // Before the scale below, which needs the decayed parameters. Without decay the pass is left out.
    for (float& parameter : parameters) parameter *= numbers.kept;
  }
  // Taken after the decay, as in Keras: the scale is that of the parameters which the step changes.
  const double scale = std::max(numbers.least_scale, root_mean_square(parameters));
  if (array.shape->rank() < 2) {
    for (std::size_t i = 0; i < elements; ++i) {
      row_slot[i] = blended(row_slot[i], regulated_square(gradients[i], numbers.epsilon), numbers.old_share);
    }
    return make_step(numbers, scale, parameters, [&](const auto& use) { for_directions(gradients, row_slot, use); });
  }
  const Matrices matrices = matrices_of(*array.shape);
  const std::size_t each = matrices.rows * matrices.columns;
  std::vector<double> sums;
  // All factors come before the step, since its size is that of the whole array and not of one matrix.
  for (std::size_t matrix = 0; matrix < matrices.count; ++matrix) {
    const std::size_t begin = matrix * each;
    update_factors(matrices, numbers, gradients.subspan(begin, each), row_slot.subspan(begin, each),
                   column_slot.subspan(begin, each), sums);
  }
  make_step(numbers, scale, parameters, [&](const auto& use) {
    for (std::size_t matrix = 0; matrix < matrices.count; ++matrix) {
      const std::size_t begin = matrix * each;
      for_directions(matrices, gradients.subspan(begin, each), row_slot.subspan(begin, each),
                     column_slot.subspan(begin, each),
                     [&](std::size_t i, double direction) { use(begin + i, direction); });
    }
  });
}

}  // namespace holdfast
