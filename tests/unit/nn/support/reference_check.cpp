#include "unit/nn/support/reference_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/core/random.h"
#include "nn/program/model_program.h"

namespace holdfast::reference {

// Central differences in double are off by step^2 / 6 times a third derivative and by 2^-53 times the loss over the
// step: below 1e-8 for the losses here, whose third derivatives stay below 100.
static constexpr double kStep = 1e-5;
static constexpr double kDifferenceError = 1e-8;

double Rounding::tolerance() const {
  return paths * largest_path * roundings * 0x1p-24 + kDifferenceError;
}

std::vector<float> random_values(std::size_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  std::vector<float> values(count);
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

Values widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

static std::vector<float> random_arena(const ArenaLayout& layout, std::uint64_t number) {
  std::vector<float> arena(layout.float_count());
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    const std::vector<float> values = random_values(layout.entries()[entry].element_count(), number + entry);
    std::copy(values.begin(), values.end(), layout.view(std::span<float>(arena), entry).begin());
  }
  return arena;
}

static double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Prints the worst element only: a wrong layer gets all of them wrong.
static void expect_near(std::span<const float> values, const Values& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  std::size_t worst = 0;
  const auto error = [&](std::size_t i) { return std::abs(static_cast<double>(values[i]) - expected[i]); };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (error(i) > error(worst) || std::isnan(error(i))) worst = i;
  }
  if (values.empty()) return;
  EXPECT_LE(error(worst), tolerance) << what << ": element " << worst << " of " << values.size() << " is "
                                     << values[worst] << ", not " << expected[worst];
}

void expect_training_matches(const holdfast::Model& model, std::int64_t samples, const Model& reference,
                             const Rounding& rounding) {
  const std::vector<float> features =
      random_values(static_cast<std::size_t>(samples * model.input_shape().element_count()), 100);
  const std::vector<float> output_gradient =
      random_values(static_cast<std::size_t>(samples * model.output_shape().element_count()), 200);
  const ArenaLayout& layout = model.parameters();
  const std::vector<float> parameters = random_arena(layout, 300);
  // Not zero, so that what is not written shows.
  std::vector<float> gradients(parameters.size(), 77.0F);
  ModelProgram program(model, 1);
  std::vector<float> contributions(program.contribution_count());

  const std::span<const float> outputs = program.forward_training(features, samples, parameters, {});
  const std::vector<float> kept_outputs(outputs.begin(), outputs.end());
  program.backward(output_gradient, parameters, gradients, contributions);

  std::vector<Values> wide;
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    wide.push_back(widened(layout.view(std::span<const float>(parameters), entry)));
  }
  const Values wide_features = widened(features);
  expect_near(kept_outputs, reference(wide_features, wide), rounding.tolerance(), "outputs");
  const Values wide_gradient = widened(output_gradient);
  for (std::size_t entry = 0; entry < wide.size(); ++entry) {
    Values differences;
    for (double& weight : wide[entry]) {
      const double before = weight;
      weight = before + kStep;
      const double above = dot(reference(wide_features, wide), wide_gradient);
      weight = before - kStep;
      const double below = dot(reference(wide_features, wide), wide_gradient);
      weight = before;
      differences.push_back((above - below) / (2 * kStep));
    }
    expect_near(layout.view(std::span<const float>(gradients), entry), differences, rounding.tolerance(),
                "gradient of " + layout.entries()[entry].name);
  }
}

}  // namespace holdfast::reference
