// Metrics on a device are sums over rows or elements. cuda_sums.cuh adds them in an order that depends on the shape
// alone, so that a metric has the same bits at each run. docs/decisions/device-arithmetic.md

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
  // Comparisons with a NaN are false, so std::max_element never leaves a first element that is one.
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

// The value of a row or an element, times the weight of the rows to which it belongs. What is masked is not looked at.
template <class Value>
struct WeightedRow {
  Value value;
  const float* weights;
  std::int64_t rows_each;

  template <class Group>
  __device__ double operator()(Group group, std::int64_t row) const {
    const float weight = weights[row / rows_each];
    return weight == 0 ? 0 : weight * value(group, row);
  }
};

template <class Value>
struct WeightedElement {
  Value value;
  const float* weights;
  std::int64_t elements_each;

  __device__ double operator()(std::int64_t index, const OutputAndTarget& at) const {
    const float weight = weights[index / elements_each];
    return weight == 0 ? 0 : weight * value(index, at);
  }
};

// The plain kernels stay as they are where there are no weights: most runs have none.
struct Queue {
  const MetricShape& shape;
  const RowArrays& arrays;
  float* sum;
  SumWorkspace* workspace;
  cudaStream_t stream;

  template <class Value>
  void rows(const char* name, const Value& value) const {
    if (arrays.weights == nullptr) return sum_of_rows(name, value);
    sum_of_rows(name, WeightedRow<Value>{value, arrays.weights, shape.rows_each});
  }
  template <class Value>
  void elements(const char* name, const Value& value) const {
    if (arrays.weights == nullptr) return sum_of_elements(name, value);
    sum_of_elements(name, WeightedElement<Value>{value, arrays.weights, shape.rows_each * shape.outputs});
  }

 private:
  template <class Value>
  void sum_of_rows(const char* name, const Value& value) const {
    sum_rows(name, value, shape.rows, shape.outputs, static_cast<double>(shape.rows_each), workspace, sum, stream);
  }
  template <class Value>
  void sum_of_elements(const char* name, const Value& value) const {
    sum_elements(name, value, arrays.outputs, arrays.targets, shape.rows * shape.outputs,
                 static_cast<double>(shape.rows_each * shape.outputs), workspace, sum, stream);
  }
};

}  // namespace

void queue_metric(const MetricShape& shape, const RowArrays& arrays, float* sum, SumWorkspace* workspace,
                  cudaStream_t stream) {
  const Queue queue = {shape, arrays, sum, workspace, stream};
  const Rows rows = {arrays.outputs, arrays.targets, shape.outputs};
  switch (shape.kind) {
    case MetricKind::sparse_categorical_accuracy:
      return queue.rows("sparse_categorical_accuracy", SparseHits{rows});
    case MetricKind::categorical_accuracy:
      return queue.rows("categorical_accuracy", CategoricalHits{rows});
    case MetricKind::binary_accuracy:
      return queue.elements("binary_accuracy", BinaryHits{shape.threshold});
    case MetricKind::mean_absolute_error:
      return queue.elements("mean_absolute_error", AbsoluteErrors{});
  }
}

}  // namespace holdfast::compute
