#include "holdfast/nn/binary_crossentropy.h"

#include <algorithm>

#include "compute/arithmetic/crossentropy.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/device_kernels.h"
#include "compute/label_problems.h"
#include "core/sample_error.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/smoothed_crossentropies.h"
#include "nn/program/sample_rows.h"

namespace holdfast {

static void require_probabilities(const SampleRows& rows) {
  const auto wrong = std::ranges::find_if_not(rows.targets, compute::is_probability);
  if (wrong == rows.targets.end()) return;
  const auto row = static_cast<std::size_t>(wrong - rows.targets.begin()) / rows.output_elements;
  throw SampleError(static_cast<std::int64_t>(row), static_cast<std::int64_t>(rows.count),
                    compute::problem_of_probability(*wrong));
}

BinaryCrossentropy::BinaryCrossentropy(CrossentropyOptions options)
    : options_(options), smoothed_(smoothed_binary_crossentropy(options)) {
  check_has_no_class_numbers("binary_crossentropy", options);
}

std::string BinaryCrossentropy::name() const {
  return "binary_crossentropy";
}

std::string BinaryCrossentropy::configuration() const {
  // The other option changes a check and none of the numbers, so a run may resume with another one.
  return crossentropy_configuration(name(), options_);
}

std::unique_ptr<Loss> BinaryCrossentropy::clone() const {
  return std::make_unique<BinaryCrossentropy>(*this);
}

// Each output is a decision of its own, so it has a target of its own.
Shape BinaryCrossentropy::target_shape(const Shape& output) const {
  return output;
}

void BinaryCrossentropy::check_last_activation(std::optional<Activation> last) const {
  check_crossentropy(name(), options_, last, "sigmoid");
}

float BinaryCrossentropy::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                                   float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  check_gradient(*this, rows, gradient);
  require_probabilities(rows);
  if (smoothed_) return smoothed_->evaluate(outputs, targets, samples, scale, gradient);
  // Scores have a formula of their own, which needs no logarithm of a number near 0. docs/numerics.md
  const compute::VectorKernels& kernels = compute::vector_kernels();
  const auto losses = options_.from_logits ? kernels.binary_loss_of_logits : kernels.binary_loss_of_probabilities;
  // The loss of a sample is the mean over its elements. Without rows the factor is infinite, and multiplies nothing.
  const float factor = scale / static_cast<float>(rows.output_elements);
  const double sum = losses(outputs.data(), targets.data(), static_cast<std::int64_t>(outputs.size()), factor,
                            gradient.empty() ? nullptr : gradient.data());
  return rows.count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(rows.output_elements));
}

bool BinaryCrossentropy::describe_kernel(compute::LossShape& kernel) const {
  if (smoothed_) return false;
  // Devices compute with the same formulas (compute/arithmetic/crossentropy.h).
  kernel.kind = compute::LossKind::binary_crossentropy;
  kernel.from_logits = options_.from_logits;
  return true;
}

}  // namespace holdfast
