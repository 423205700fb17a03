// The host's losses, metrics and optimizers, run through the pretended memory, which records and repeats them.

#include "pretended_kernels.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "compute/arithmetic/gradient_clipping.h"
#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "optim/update_pass.h"

namespace holdfast {
namespace {

std::unique_ptr<Loss> loss_of(const compute::LossShape& shape) {
  switch (shape.kind) {
    case compute::LossKind::sparse_categorical_crossentropy:
      return SparseCategoricalCrossentropy({.from_logits = shape.from_logits}).clone();
    case compute::LossKind::categorical_crossentropy:
      return CategoricalCrossentropy({.from_logits = shape.from_logits}).clone();
    case compute::LossKind::binary_crossentropy:
      return BinaryCrossentropy({.from_logits = shape.from_logits}).clone();
    case compute::LossKind::mean_squared_error:
      return MeanSquaredError().clone();
  }
  HOLDFAST_ASSERT(false);
}

std::unique_ptr<Metric> metric_of(const compute::MetricShape& shape) {
  switch (shape.kind) {
    case compute::MetricKind::sparse_categorical_accuracy:
      return SparseCategoricalAccuracy().clone();
    case compute::MetricKind::categorical_accuracy:
      return CategoricalAccuracy().clone();
    case compute::MetricKind::binary_accuracy:
      return BinaryAccuracy({.threshold = shape.threshold}).clone();
    case compute::MetricKind::mean_absolute_error:
      return MeanAbsoluteError().clone();
  }
  HOLDFAST_ASSERT(false);
}

bool has_class_labels(compute::LossKind kind) {
  return kind == compute::LossKind::sparse_categorical_crossentropy;
}

bool has_class_labels(compute::MetricKind kind) {
  return kind == compute::MetricKind::sparse_categorical_accuracy;
}

std::span<const float> floats_of(const float* first, std::int64_t count) {
  return {first, static_cast<std::size_t>(count)};
}

// The sum over groups of rows with a common weight, as the host's path of training takes it: `mean_of(first row, rows,
// weight)` is called for each group, or once where all weights are 1.
template <class Shape, class MeanOf>
float sum_of(const Shape& shape, const float* weights, const MeanOf& mean_of) {
  if (weights == nullptr) return mean_of(0, shape.rows, 1.0F);
  double sum = 0;
  for (std::int64_t group = 0; group < shape.rows / shape.rows_each; ++group) {
    if (weights[group] == 0) continue;
    sum += static_cast<double>(weights[group]) *
           static_cast<double>(mean_of(group * shape.rows_each, shape.rows_each, weights[group]));
  }
  return static_cast<float>(sum);
}

}  // namespace

void PretendedKernels::loss(const compute::LossShape& shape, const compute::RowArrays& arrays, float scale,
                            float* gradient, float* sum) {
  memory_.queue([=] {
    const std::unique_ptr<Loss> loss = loss_of(shape);
    const auto each = static_cast<float>(shape.rows_each);
    const std::int64_t target_width = has_class_labels(shape.kind) ? 1 : shape.outputs;
    if (gradient != nullptr && arrays.weights != nullptr) std::fill_n(gradient, shape.rows * shape.outputs, 0.0F);
    *sum = sum_of(shape, arrays.weights, [&](std::int64_t first, std::int64_t rows, float weight) {
      const auto count = static_cast<std::size_t>(gradient == nullptr ? 0 : rows * shape.outputs);
      return loss->evaluate(floats_of(arrays.outputs + first * shape.outputs, rows * shape.outputs),
                            floats_of(arrays.targets + first * target_width, rows * target_width), rows,
                            scale * weight / each, {gradient + (count == 0 ? 0 : first * shape.outputs), count}) /
             each;
    });
  });
}

void PretendedKernels::metric(const compute::MetricShape& shape, const compute::RowArrays& arrays, float* sum) {
  memory_.queue([=] {
    const std::unique_ptr<Metric> metric = metric_of(shape);
    const std::int64_t target_width = has_class_labels(shape.kind) ? 1 : shape.outputs;
    *sum = sum_of(shape, arrays.weights, [&](std::int64_t first, std::int64_t rows, float) {
      return metric->sum(floats_of(arrays.outputs + first * shape.outputs, rows * shape.outputs),
                         floats_of(arrays.targets + first * target_width, rows * target_width), rows) /
             static_cast<float>(shape.rows_each);
    });
  });
}

void PretendedKernels::sgd(const compute::SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
                           float* velocity) {
  memory_.queue([=] {
    const std::span<float> slot(velocity, velocity == nullptr ? 0 : floats);
    run_pass({step}, {{parameters, floats}, {gradients, floats}, std::span(&slot, velocity == nullptr ? 0 : 1)});
  });
}

void PretendedKernels::adam(const compute::AdamStep& step, std::size_t floats, float* parameters,
                            const float* gradients, float* m, float* v) {
  memory_.queue([=] {
    const std::vector<std::span<float>> slots{{m, floats}, {v, floats}};
    run_pass({step}, {{parameters, floats}, {gradients, floats}, slots});
  });
}

void PretendedKernels::clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) {
  memory_.queue([=] {
    for (std::size_t i = 0; i < floats; ++i) clipped[i] = compute::clipped_value(gradients[i], limit);
  });
}

void PretendedKernels::clip_norms(std::span<const compute::NormRange> ranges, float limit, const float* gradients,
                                  float* clipped, float* /*workspace*/) {
  memory_.queue([ranges = std::vector(ranges.begin(), ranges.end()), limit, gradients, clipped] {
    for (const compute::NormRange& range : ranges) {
      std::vector<double> chunk_sums(compute::norm_chunks(range));
      const double squares = compute::sum_of_squares({gradients + range.begin, gradients + range.end}, chunk_sums);
      const float scale = compute::norm_scale(squares, limit);
      for (std::size_t i = range.begin; i < range.end; ++i) clipped[i] = gradients[i] * scale;
    }
  });
}

void PretendedKernels::update_moving(const float* sums, const float* count, std::size_t floats, float momentum,
                                     float* moving) {
  memory_.queue([=] {
    if (*count == 0) return;
    for (std::size_t i = 0; i < floats; ++i) moving[i] = moving[i] * momentum + sums[i] / *count * (1 - momentum);
  });
}

void PretendedKernels::find_not_finite(const float* array, std::size_t floats, float* found) {
  memory_.queue([=] { *found = std::bit_cast<float>(host_memory().is_finite({array, floats}) ? 0U : 1U); });
}

void PretendedKernels::clear(std::span<const Gap> gaps, float* arena) {
  memory_.queue([gaps = std::vector(gaps.begin(), gaps.end()), arena] {
    for (const Gap& gap : gaps) std::fill(arena + gap.begin, arena + gap.end, 0.0F);
  });
}

}  // namespace holdfast
