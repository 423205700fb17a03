// A target is the number of one class, so one logarithm is enough for a sample. The formulas are those of
// categorical_crossentropy.cpp for a target of 1 at the label. docs/numerics.md

#include "holdfast/nn/sparse_categorical_crossentropy.h"

#include <fmt/format.h>

#include <algorithm>

#include "compute/device_kernels.h"
#include "compute/label_problems.h"
#include "core/sample_error.h"
#include "holdfast/base/error.h"
#include "nn/losses/crossentropy_checks.h"
#include "nn/losses/softmax_row.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
namespace {

std::size_t checked_class(const SampleRows& rows, std::size_t row) {
  const float label = rows.targets[row];
  const auto classes = static_cast<std::int64_t>(rows.output_elements);
  // A wrong label would read beyond the row, so each one is checked.
  if (compute::is_class_label(label, classes)) return static_cast<std::size_t>(label);
  throw SampleError(static_cast<std::int64_t>(row), static_cast<std::int64_t>(rows.count),
                    compute::problem_of_class_label(label, classes));
}

double evaluate_labelled_logits(std::span<const float> row, std::size_t label, float scale, float,
                                std::span<float> gradient) {
  const SoftmaxRow softmax = softmax_row(row, gradient);
  if (!gradient.empty()) {
    // The gradient is softmax - 1 at the label and softmax elsewhere.
    const auto factor = static_cast<float>(scale / softmax.sum);
    compute::vector_kernels().scale(gradient.data(), static_cast<std::int64_t>(gradient.size()), factor);
    gradient[label] -= scale;
  }
  return compute::loss_of_logit(softmax, row[label]);
}

// Szegedy et al., 2016. Each class has the target s / classes, and the label 1 - s more. The mean over all classes of
// their losses follows from the mean of the scores.
double evaluate_smoothed_logits(std::span<const float> row, std::size_t label, float scale, float smoothing,
                                std::span<float> gradient) {
  const SoftmaxRow softmax = softmax_row(row, gradient);
  const auto classes = static_cast<std::int64_t>(row.size());
  if (!gradient.empty()) {
    const auto factor = static_cast<float>(scale / softmax.sum);
    const float of_each = scale * (smoothing / static_cast<float>(classes));
    for (float& element : gradient) element = element * factor - of_each;
    gradient[label] -= scale * (1 - smoothing);
  }
  const double mean = compute::vector_kernels().sum(row.data(), classes) / static_cast<double>(classes);
  const double of_all = softmax.log_sum - (mean - softmax.largest);
  return (1 - static_cast<double>(smoothing)) * compute::loss_of_logit(softmax, row[label]) +
         static_cast<double>(smoothing) * of_all;
}

double evaluate_labelled_probabilities(std::span<const float> row, std::size_t label, float scale, float,
                                       std::span<float> gradient) {
  const double sum = compute::vector_kernels().sum(row.data(), static_cast<std::int64_t>(row.size()));
  const ClippedProbability p = compute::clipped_share(row[label], sum);
  if (!gradient.empty()) {
    // loss = log(sum) - log(row[label]): the sum pulls on every class.
    std::fill(gradient.begin(), gradient.end(), p.is_clipped ? 0.0F : static_cast<float>(scale / sum));
    if (!p.is_clipped) gradient[label] -= scale / row[label];
  }
  return compute::loss_of_share(p);
}

}  // namespace

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(CrossentropyOptions options) : options_(options) {
  check_ignored_class("sparse_categorical_crossentropy", options.ignore_class);
  if (options.positions_at_once < 0 || (options.positions_at_once > 0 && !options.from_logits)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("sparse_categorical_crossentropy was given .positions_at_once = {}{}", options.positions_at_once,
                    options.positions_at_once < 0 ? "; it is a number from 0 on"
                                                  : " without from_logits; probabilities need all positions, so "
                                                    "leave it out, or end the model with scores"));
  }
  const float smoothing = options.label_smoothing;
  if (smoothing == 0 || (smoothing > 0 && smoothing <= 1 && options.from_logits)) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("sparse_categorical_crossentropy was given .label_smoothing = {}{}", smoothing,
                  smoothing > 0 && smoothing <= 1
                      ? " without from_logits; end the model with scores, or use CategoricalCrossentropy with one-hot "
                        "targets"
                      : "; it is a number from 0 to 1"));
}

std::string SparseCategoricalCrossentropy::name() const {
  return "sparse_categorical_crossentropy";
}

std::string SparseCategoricalCrossentropy::configuration() const {
  return crossentropy_configuration(name(), options_);
}

std::unique_ptr<Loss> SparseCategoricalCrossentropy::clone() const {
  return std::make_unique<SparseCategoricalCrossentropy>(*this);
}

Shape SparseCategoricalCrossentropy::target_shape(const Shape& output) const {
  check_has_classes(name(), output);
  // A label is one number, so a target has the axes of the positions alone.
  return Shape({output.extents().begin(), output.extents().end() - 1});
}

void SparseCategoricalCrossentropy::check_last_activation(std::optional<Activation> last) const {
  check_crossentropy(name(), options_, last, "softmax");
}

float SparseCategoricalCrossentropy::evaluate(std::span<const float> outputs, std::span<const float> targets,
                                              std::int64_t samples, float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_scalar_targets(*this, outputs, targets, samples);
  check_gradient(*this, rows, gradient);
  // Chosen once and not for each row. All three have one signature, so two of them ignore the smoothing.
  const auto evaluate_row = !options_.from_logits           ? evaluate_labelled_probabilities
                            : options_.label_smoothing != 0 ? evaluate_smoothed_logits
                                                            : evaluate_labelled_logits;
  // Samples are added in their order, which no number of threads changes.
  double sum = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    if (options_.ignore_class && rows.targets[row] == static_cast<float>(*options_.ignore_class)) {
      // The arena of a pass holds old numbers, so zeros must be written.
      std::ranges::fill(rows.gradient(gradient, row), 0.0F);
      continue;
    }
    sum += evaluate_row(rows.output(row), checked_class(rows, row), scale, options_.label_smoothing,
                        rows.gradient(gradient, row));
  }
  return static_cast<float>(sum);
}

std::size_t SparseCategoricalCrossentropy::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

std::optional<float> SparseCategoricalCrossentropy::ignored_target() const {
  return options_.ignore_class ? std::optional(static_cast<float>(*options_.ignore_class)) : std::nullopt;
}

bool SparseCategoricalCrossentropy::describe_kernel(compute::LossShape& kernel) const {
  // The kernel takes each target for a class, and an ignored one may be any number. It has no smoothing.
  if (options_.ignore_class || options_.label_smoothing != 0) return false;
  // Devices compute with the same formulas (compute/arithmetic/crossentropy.h).
  kernel.kind = compute::LossKind::sparse_categorical_crossentropy;
  kernel.from_logits = options_.from_logits;
  return true;
}

}  // namespace holdfast
