#pragma once

// What training needs of a device besides the layers' operations: losses, metrics, optimizers, moving averages. On the
// host these are functions of the public classes Loss, Metric and Optimizer, which document the formulas. A device
// gives the same numbers within rounding. Its sums over samples have one order, which depends on the shapes alone.
//
// All pointers are to the back end's memory space, rows have no gaps, and no call waits except check(). check() finds
// values that no sample can have, such as a class label that does not exist.

#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast::compute {

enum class LossKind {
  sparse_categorical_crossentropy,
  categorical_crossentropy,
  binary_crossentropy,
  mean_squared_error
};

// Whether check() looks at the targets of such a loss.
inline bool checks_targets(LossKind kind) {
  return kind == LossKind::sparse_categorical_crossentropy || kind == LossKind::binary_crossentropy;
}

struct LossShape {
  LossKind kind = LossKind::mean_squared_error;
  bool from_logits = false;    // crossentropies only
  std::int64_t rows = 0;       // samples, or positions of samples; at least 1
  std::int64_t outputs = 0;    // of a row
  std::int64_t rows_each = 1;  // so many rows, one after another, count by their mean and share a weight
  std::int64_t first_row = 0;  // the number of the first one, for errors
};

enum class MetricKind { sparse_categorical_accuracy, categorical_accuracy, binary_accuracy, mean_absolute_error };

struct MetricShape {
  MetricKind kind = MetricKind::mean_absolute_error;
  float threshold = 0;  // binary_accuracy only
  std::int64_t rows = 0;
  std::int64_t outputs = 0;
  std::int64_t rows_each = 1;
};

// What losses and metrics read. `weights` has rows / rows_each numbers, and is null where all are 1. Rows of weight 0
// may hold anything.
struct RowArrays {
  const float* outputs = nullptr;
  const float* targets = nullptr;
  const float* weights = nullptr;
};

struct SgdStep {
  float learning_rate = 0;
  float momentum = 0;
  bool nesterov = false;
};

// See optim/adam_pass.h.
struct AdamStep {
  float beta_1_rest = 0;
  float beta_2_rest = 0;
  float rate = 0;
  float epsilon = 0;
  float kept = 1;  // the factor of the parameter before the step: 1 - learning_rate * weight_decay
};

// See optim/lamb.h.
struct LambStep {
  float beta_1_rest = 0;
  float beta_2_rest = 0;
  float momentum_correction = 1;
  float velocity_correction = 1;
  float epsilon = 0;
  float kept = 1;  // as in AdamStep
};

// Floats [begin, end) of an arena that are clipped by one norm.
struct NormRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  // *sum = sum of weight * loss; gradient[i] = scale * d(that sum) / d outputs[i], unless `gradient` is null.
  virtual void loss(const LossShape& shape, const RowArrays& arrays, float scale, float* gradient, float* sum) = 0;
  virtual void metric(const MetricShape& shape, const RowArrays& arrays, float* sum) = 0;

  // `velocity` is null without momentum.
  virtual void sgd(const SgdStep& step, std::size_t floats, float* parameters, const float* gradients,
                   float* velocity) = 0;
  virtual void adam(const AdamStep& step, std::size_t floats, float* parameters, const float* gradients, float* m,
                    float* v) = 0;

  // Gradient clipping, with the bits of arithmetic/gradient_clipping.h. clipped[i] is the value in [-limit, limit] that
  // is nearest to gradients[i].
  virtual void clip_values(float limit, std::size_t floats, const float* gradients, float* clipped) = 0;
  // In each range clipped[i] = gradients[i] * min(1, limit / norm of the range). Nothing outside the ranges is written.
  // `workspace` has norm_workspace_floats(ranges) floats, aligned for doubles.
  virtual void clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                          float* workspace) = 0;

  // moving[i] = moving[i] * momentum + sums[i] / *count * (1 - momentum). Does nothing if *count is 0.
  virtual void update_moving(const float* sums, const float* count, std::size_t floats, float momentum,
                             float* moving) = 0;

  // No bit of *found is set if all elements are finite.
  virtual void find_not_finite(const float* array, std::size_t floats, float* found) = 0;

  struct Gap {
    std::size_t begin = 0;  // in floats
    std::size_t end = 0;
  };
  // Writes zeros into the gaps of an arena.
  virtual void clear(std::span<const Gap> gaps, float* arena) = 0;

  // Waits. If a loss since the last check got a target that no sample can have, throws Error{invalid_argument}, which
  // names the first such sample. The sum of such a loss is NaN.
  virtual void check() = 0;
};

}  // namespace holdfast::compute
