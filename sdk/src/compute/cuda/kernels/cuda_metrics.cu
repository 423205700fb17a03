// Metrics on a device are sums over rows or elements. cuda_sums.cuh adds them in an order that depends on the shape
// alone, so that a metric has the same bits at each run.

#include <cmath>

#include "compute/cuda/kernels/cuda_metrics.h"
#include "compute/cuda/kernels/cuda_sums.cuh"

namespace holdfast::compute {
namespace {

// The result of std::max_element: the first of equal elements. A NaN wins if it is the first element, and else never.
template <class Group>
__device__ std::int64_t index_of_largest(Group group, const float* row, std::int64_t length) {
  // An index after the row loses against every element of it.
  Candidate best = {-INFINITY, length};
#pragma unroll 4
  for (std::int64_t i = group.rank(); i < length; i += Group::kThreads) best = better(best, {row[i], i});
  // The smaller index wins among equals, so it does not matter which thread had which element.
  best = group.best(best);
  return isnan(row[0]) ? 0 : best.index;
}

struct Rows {
  const float* outputs;
  const float* targets;
  std::int64_t length;
};

struct SparseHits : Rows {
  template <class Group>
  __device__ double operator()(Group group, std::int64_t row) const {
    // Labels are floats, which are exact for whole numbers up to 2^24.
    return static_cast<float>(index_of_largest(group, outputs + row * length, length)) == targets[row] ? 1 : 0;
  }
};

struct CategoricalHits : Rows {
  template <class Group>
  __device__ double operator()(Group group, std::int64_t row) const {
    const std::int64_t output = index_of_largest(group, outputs + row * length, length);
    return output == index_of_largest(group, targets + row * length, length) ? 1 : 0;
  }
};

struct BinaryHits {
  float threshold;

  __device__ double operator()(std::int64_t, const OutputAndTarget& at) const {
    // Strictly above the threshold, as in Keras.
    return at.target == (at.output > threshold ? 1.0F : 0.0F) ? 1 : 0;
  }
};

struct AbsoluteErrors {
  __device__ double operator()(std::int64_t, const OutputAndTarget& at) const {
    // In double, which rounds the difference of two floats less than a float does.
    return std::abs(static_cast<double>(at.output) - static_cast<double>(at.target));
  }
};

}  // namespace

void queue_metric(const MetricShape& shape, const float* outputs, const float* targets, float* sum,
                  SumWorkspace* workspace, cudaStream_t stream) {
  const Rows rows = {outputs, targets, shape.outputs};
  const std::int64_t elements = shape.samples * shape.outputs;
  const auto divisor = static_cast<double>(shape.outputs);
  switch (shape.kind) {
    case MetricKind::sparse_categorical_accuracy:
      return sum_rows("sparse_categorical_accuracy", SparseHits{rows}, shape.samples, shape.outputs, workspace, sum,
                      stream);
    case MetricKind::categorical_accuracy:
      return sum_rows("categorical_accuracy", CategoricalHits{rows}, shape.samples, shape.outputs, workspace, sum,
                      stream);
    case MetricKind::binary_accuracy:
      return sum_elements("binary_accuracy", BinaryHits{shape.threshold}, outputs, targets, elements, divisor,
                          workspace, sum, stream);
    case MetricKind::mean_absolute_error:
      return sum_elements("mean_absolute_error", AbsoluteErrors{}, outputs, targets, elements, divisor, workspace, sum,
                          stream);
  }
}

}  // namespace holdfast::compute
