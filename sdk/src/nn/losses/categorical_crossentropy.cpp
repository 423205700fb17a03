// The loss of a sample is the sum of -t log(p) over its classes. From scores, log(p) is computed without p: a class of
// a tiny probability then has a large loss, and not an infinite one. Probabilities are divided by their sum first, as
// in Keras. docs/numerics.md

#include "holdfast/nn/categorical_crossentropy.h"

#include "compute/device_kernels.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/smoothed_crossentropies.h"
#include "nn/losses/softmax_row.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
namespace {

// Total over classes of target[c] * (log(sum) + largest - row[c]).
double evaluate_logits(std::span<const float> row, std::span<const float> target, float scale,
                       std::span<float> gradient) {
  // The gradient holds the exponentials until it is complete, so no other memory is needed.
  const SoftmaxRow softmax = softmax_row(row, gradient);
  const compute::VectorKernels& kernels = compute::vector_kernels();
  const auto classes = static_cast<std::int64_t>(row.size());
  if (!gradient.empty()) {
    // The gradient is softmax * (sum of the targets) - target. The targets of a row need not add up to 1.
    const auto factor = static_cast<float>(scale * kernels.sum(target.data(), classes) / softmax.sum);
    kernels.scale_and_subtract(gradient.data(), target.data(), classes, factor, scale);
  }
  return kernels.categorical_loss(row.data(), target.data(), classes, softmax.largest, softmax.log_sum);
}

// Probabilities are divided by their sum, so their gradient has a part through that sum besides their own.
double evaluate_probabilities(std::span<const float> row, std::span<const float> target, float scale,
                              std::span<float> gradient) {
  const double sum = compute::vector_kernels().sum(row.data(), static_cast<std::int64_t>(row.size()));
  double loss = 0;
  double moving_target = 0;  // the part of the target whose probabilities are not clipped
  for (std::size_t c = 0; c < row.size(); ++c) {
    // A clipped probability is constant, so neither its class nor the sum gets a gradient from it.
    const ClippedProbability p = compute::clipped_share(row[c], sum);
    loss += target[c] * compute::loss_of_share(p);
    moving_target += p.is_clipped ? 0.0F : target[c];
    if (!gradient.empty()) gradient[c] = p.is_clipped ? 0.0F : -scale * target[c] / row[c];
  }
  // The sum by which outputs are divided pulls on every class.
  for (float& element : gradient) element += static_cast<float>(scale * moving_target / sum);
  return loss;
}

}  // namespace

CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyOptions options)
    : options_(options), smoothed_(smoothed_categorical_crossentropy(options)) {
  check_has_no_class_numbers("categorical_crossentropy", options);
}

std::string CategoricalCrossentropy::name() const {
  return "categorical_crossentropy";
}

std::string CategoricalCrossentropy::configuration() const {
  return crossentropy_configuration(name(), options_);
}

std::unique_ptr<Loss> CategoricalCrossentropy::clone() const {
  return std::make_unique<CategoricalCrossentropy>(*this);
}

Shape CategoricalCrossentropy::target_shape(const Shape& output) const {
  check_has_classes(name(), output);
  return output;
}

void CategoricalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  check_crossentropy(name(), options_, last, "softmax");
}

float CategoricalCrossentropy::evaluate(std::span<const float> outputs, std::span<const float> targets,
                                        std::int64_t samples, float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  check_gradient(*this, rows, gradient);
  if (smoothed_) return smoothed_->evaluate(outputs, targets, samples, scale, gradient);
  const auto evaluate_row = options_.from_logits ? evaluate_logits : evaluate_probabilities;
  // Samples are added in their order, which no number of threads changes.
  double sum = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    sum += evaluate_row(rows.output(row), rows.target(row), scale, rows.gradient(gradient, row));
  }
  return static_cast<float>(sum);
}

std::size_t CategoricalCrossentropy::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

bool CategoricalCrossentropy::describe_kernel(compute::LossShape& kernel) const {
  if (smoothed_) return false;
  // Devices compute with the same formulas (compute/arithmetic/crossentropy.h).
  kernel.kind = compute::LossKind::categorical_crossentropy;
  kernel.from_logits = options_.from_logits;
  return true;
}

}  // namespace holdfast
