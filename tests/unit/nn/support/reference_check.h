#pragma once

// Compares a model's training pass, outputs and gradients of all its parameters, with a reference in double.

#include <functional>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/reference.h"

namespace holdfast::reference {

// Outputs for features and one array for each of the model's parameters, in the order of its layout.
using Model = std::function<Values(const Values& features, const std::vector<Values>& parameters)>;

// How far f32 may be off. A value (output or gradient) is a sum over paths through the model, each a product of
// factors. Features, weights and the gradient of the outputs are drawn evenly from [-1, 1), so that no path is larger
// than `largest_path` and signs are random. Rounding changes a path by up to `roundings` independent errors of at most
// 2^-24 of itself; independent errors add up as the root of their number (Higham and Mary, "A New Approach to
// Probabilistic Rounding Error Analysis", 2019), over roundings and over paths. Allowed are eight times what that
// gives.
struct Rounding {
  double paths = 1;
  double roundings = 1;
  double largest_path = 1;

  double tolerance() const;
};

// Values in [-1, 1), always the same ones for a number.
std::vector<float> random_values(std::size_t count, std::uint64_t number);
Values widened(std::span<const float> values);

// Draws features, parameters and a gradient g of the outputs; compares outputs, and gradients with central differences
// of the reference's sum of g times outputs.
void expect_training_matches(const holdfast::Model& model, std::int64_t samples, const Model& reference,
                             const Rounding& rounding);

}  // namespace holdfast::reference
