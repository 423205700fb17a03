// Losses and their gradients on CUDA devices, each in one kernel. The formulas are those of arithmetic/crossentropy.h.
// A row of classes is computed by a warp or a block, and samples are added in double in one order. A label that is not
// a class, or a target beyond 0 and 1, gives a NaN and is reported through `bad_label`, because a kernel cannot
// throw. See docs/decisions/devices.md.

#include <cmath>

#include "compute/arithmetic/crossentropy.h"
#include "compute/cuda/kernels/cuda_losses.h"
#include "compute/cuda/kernels/cuda_sums.cuh"

namespace holdfast::compute {
namespace {

struct Row {
  const float* outputs;
  float* gradient;  // or null
  std::int64_t length;
};

// The common part of losses over classes.
struct Rows {
  LossArrays arrays;
  std::int64_t classes;
  float scale;

  __device__ Row row(std::int64_t index) const {
    float* const gradient = arrays.gradient == nullptr ? nullptr : arrays.gradient + index * classes;
    return {arrays.outputs + index * classes, gradient, classes};
  }
};

// Writes `element(c, output)` as the gradient of each class c of the row.
template <class Group, class Element>
__device__ void write_gradient(Group group, const Row& row, const Element& element) {
  // An evaluation wants the loss alone.
  if (row.gradient == nullptr) return;
  for_each_of_row(
      group, row.length, [&](std::int64_t c) { return row.outputs[c]; },
      [&](std::int64_t c, float output) { row.gradient[c] = element(c, output); });
}

// The same for classes whose targets are shares, with `element(output, target)`.
template <class Group, class Element>
__device__ void write_gradient(Group group, const Row& row, const float* targets, const Element& element) {
  if (row.gradient == nullptr) return;
  for_each_of_row(
      group, row.length,
      [&](std::int64_t c) {
        return OutputAndTarget{row.outputs[c], targets[c]};
      },
      [&](std::int64_t c, const OutputAndTarget& at) { row.gradient[c] = element(at.output, at.target); });
}

template <class Group>
__device__ SoftmaxRow softmax_of(Group group, const Row& row) {
  const auto load = [&](std::int64_t c) { return row.outputs[c]; };
  float largest = -INFINITY;
  for_each_of_row(group, row.length, load, [&](std::int64_t, float output) { largest = fmaxf(largest, output); });
  // Every thread gets the largest, since each computes the exponentials of its own elements.
  largest = group.largest(largest);
  double sum = 0;
  for_each_of_row(group, row.length, load,
                  [&](std::int64_t, float output) { sum += softmax_exponential(output, largest); });
  sum = group.sum(sum);
  return {largest, sum, logarithm_of_sum(sum)};
}

template <class Group>
__device__ double sum_of(Group group, const Row& row) {
  double sum = 0;
  for_each_of_row(
      group, row.length, [&](std::int64_t c) { return row.outputs[c]; },
      [&](std::int64_t, float output) { sum += output; });
  return group.sum(sum);
}

// The row is in the upper half of the word, so the first bad row wins whatever the order of blocks is.
__device__ void report(BadLabel* bad_label, std::int64_t row, float label) {
  atomicMin(bad_label, static_cast<BadLabel>(row) << 32 | __float_as_uint(label));
}

// A target is the number of a class, so a row has one.
struct SparseRows : Rows {
  BadLabel* bad_label;
  std::int64_t first_row;

  // A bad label is never used as an index.
  template <class Group>
  __device__ double refuse(Group group, std::int64_t index, float label) const {
    if (group.rank() == 0) report(bad_label, first_row + index, label);
    write_gradient(group, row(index), [](std::int64_t, float) { return 0.0F; });
    return NAN;
  }
};

// A Group is a warp or a block. All its threads call a row together, and each has a part of the row's classes.
struct SparseLogits : SparseRows {
  template <class Group>
  __device__ double operator()(Group group, std::int64_t index) const {
    const float label = arrays.targets[index];
    // All threads of the group see the same label. So all of them return, and none waits for the others in a sum.
    if (!is_class_label(label, classes)) return refuse(group, index, label);
    const auto target = static_cast<std::int64_t>(label);
    const Row scores = row(index);
    const SoftmaxRow softmax = softmax_of(group, scores);
    // The gradient is (softmax - target) * scale. The division is made once a row instead of for each class.
    const auto factor = static_cast<float>(scale / softmax.sum);
    write_gradient(group, scores, [&](std::int64_t c, float score) {
      const float pull = softmax_exponential(score, softmax.largest) * factor;
      // The target is 1 for its class and 0 for all others.
      return c == target ? pull - scale : pull;
    });
    return loss_of_logit(softmax, scores.outputs[target]);
  }
};

struct SparseProbabilities : SparseRows {
  template <class Group>
  __device__ double operator()(Group group, std::int64_t index) const {
    const float label = arrays.targets[index];
    if (!is_class_label(label, classes)) return refuse(group, index, label);
    const auto target = static_cast<std::int64_t>(label);
    const Row shares = row(index);
    const double sum = sum_of(group, shares);
    const ClippedProbability share = clipped_share(shares.outputs[target], sum);
    // loss = log(sum) - log(row[label]), so every class has a gradient through the sum.
    const float pull = share.is_clipped ? 0.0F : static_cast<float>(scale / sum);
    write_gradient(group, shares, [&](std::int64_t c, float output) {
      return c == target && !share.is_clipped ? pull - scale / output : pull;
    });
    return loss_of_share(share);
  }
};

struct CategoricalLogits : Rows {
  // The sum over classes of target[c] * (log(sum) + largest - row[c]).
  template <class Group>
  __device__ double operator()(Group group, std::int64_t index) const {
    const Row scores = row(index);
    const float* const target = arrays.targets + index * classes;
    const SoftmaxRow softmax = softmax_of(group, scores);
    double loss = 0;
    double target_sum = 0;
    for_each_of_row(
        group, classes,
        [&](std::int64_t c) {
          return OutputAndTarget{scores.outputs[c], target[c]};
        },
        [&](std::int64_t, const OutputAndTarget& at) {
          // A target of zero keeps a score of minus infinity (a masked class) out of the loss.
          if (at.target != 0) loss += at.target * loss_of_logit(softmax, at.output);
          target_sum += at.target;
        });
    // Targets need not add up to 1. The sum's derivative is their total times softmax.
    target_sum = group.sum(target_sum);
    const auto factor = static_cast<float>(scale * target_sum / softmax.sum);
    write_gradient(group, scores, target, [&](float score, float share) {
      return softmax_exponential(score, softmax.largest) * factor - scale * share;
    });
    return group.sum(loss);
  }
};

struct CategoricalProbabilities : Rows {
  template <class Group>
  __device__ double operator()(Group group, std::int64_t index) const {
    const Row shares = row(index);
    const float* const target = arrays.targets + index * classes;
    const double sum = sum_of(group, shares);
    double loss = 0;
    double moving_target = 0;  // the part of the target whose probabilities are not clipped
    for_each_of_row(
        group, classes,
        [&](std::int64_t c) {
          return OutputAndTarget{shares.outputs[c], target[c]};
        },
        [&](std::int64_t, const OutputAndTarget& at) {
          const ClippedProbability share = clipped_share(at.output, sum);
          loss += at.target * loss_of_share(share);
          moving_target += share.is_clipped ? 0.0F : at.target;
        });
    moving_target = group.sum(moving_target);
    // Outputs are divided by their sum, so every class has a gradient through it.
    const auto pull = static_cast<float>(scale * moving_target / sum);
    write_gradient(group, shares, target, [&](float output, float share) {
      const bool is_clipped = clipped_share(output, sum).is_clipped;
      return (is_clipped ? 0.0F : -scale * share / output) + pull;
    });
    return group.sum(loss);
  }
};

// Where targets that are not probabilities go.
struct BinaryTargets {
  BadLabel* bad_label;
  std::int64_t first_row;
  std::int64_t outputs;  // of a row

  __device__ bool takes(std::int64_t index, float target) const {
    if (is_probability(target)) return true;
    report(bad_label, first_row + index / outputs, target);
    return false;
  }
};

struct BinaryLogit : BinaryTargets {
  __device__ ElementLoss operator()(float output, float target) const { return binary_loss_of_logit(output, target); }
};

struct BinaryProbability : BinaryTargets {
  __device__ ElementLoss operator()(float output, float target) const {
    return binary_loss_of_probability(output, target);
  }
};

struct SquaredError {
  __device__ bool takes(std::int64_t, float) const { return true; }
  __device__ ElementLoss operator()(float output, float target) const { return squared_error(output, target); }
};

// A row with a weight. What is masked is not looked at, since it may be NaN.
template <class Value>
struct WeightedRow {
  Value value;
  std::int64_t rows_each;

  template <class Group>
  __device__ double operator()(Group group, std::int64_t index) const {
    const float weight = value.arrays.weights[index / rows_each];
    if (weight == 0) {
      write_gradient(group, value.row(index), [](std::int64_t, float) { return 0.0F; });
      return 0;
    }
    // The gradient is multiplied by way of its factor, and the loss where it is returned.
    Value weighted = value;
    weighted.scale *= weight;
    return weight * weighted(group, index);
  }
};

template <class Element>
struct Elements {
  float* gradient;  // or null
  float factor;
  Element element;

  __device__ double operator()(std::int64_t index, const OutputAndTarget& at) const {
    if (!element.takes(index, at.target)) {
      if (gradient != nullptr) gradient[index] = 0;
      return NAN;
    }
    // A loss of elements has no group: each thread has an element, and sum_elements() adds them.
    const ElementLoss result = element(at.output, at.target);
    if (gradient != nullptr) gradient[index] = factor * result.gradient;
    return result.loss;
  }
};

template <class Element>
struct WeightedElements {
  Elements<Element> elements;
  const float* weights;
  std::int64_t elements_each;

  __device__ double operator()(std::int64_t index, const OutputAndTarget& at) const {
    const float weight = weights[index / elements_each];
    if (weight == 0) {
      if (elements.gradient != nullptr) elements.gradient[index] = 0;
      return 0;
    }
    Elements<Element> weighted = elements;
    weighted.factor *= weight;
    return weight * weighted(index, at);
  }
};

// The plain kernels stay as they are where there are no weights: most runs have none.
template <class Element>
void queue_elements(const char* name, Element element, const LossShape& shape, const LossArrays& arrays, float factor,
                    SumWorkspace* workspace, cudaStream_t stream) {
  const std::int64_t elements_each = shape.rows_each * shape.outputs;
  const auto queue = [&](const auto& value_of) {
    sum_elements(name, value_of, arrays.outputs, arrays.targets, shape.rows * shape.outputs,
                 static_cast<double>(elements_each), workspace, arrays.sum, stream);
  };
  const Elements<Element> elements = {arrays.gradient, factor, element};
  if (arrays.weights == nullptr) return queue(elements);
  queue(WeightedElements<Element>{elements, arrays.weights, elements_each});
}

template <class Value>
void queue_rows(const char* name, const Value& value_of, const LossShape& shape, SumWorkspace* workspace,
                cudaStream_t stream) {
  const auto queue = [&](const auto& any_value_of) {
    sum_rows(name, any_value_of, shape.rows, shape.outputs, static_cast<double>(shape.rows_each), workspace,
             value_of.arrays.sum, stream);
  };
  if (value_of.arrays.weights == nullptr) return queue(value_of);
  queue(WeightedRow<Value>{value_of, shape.rows_each});
}

void queue_sparse(const LossShape& shape, const SparseRows& rows, SumWorkspace* workspace, cudaStream_t stream) {
  if (shape.from_logits) {
    return queue_rows("sparse_categorical_crossentropy of logits", SparseLogits{rows}, shape, workspace, stream);
  }
  queue_rows("sparse_categorical_crossentropy", SparseProbabilities{rows}, shape, workspace, stream);
}

void queue_categorical(const LossShape& shape, const Rows& rows, SumWorkspace* workspace, cudaStream_t stream) {
  if (shape.from_logits) {
    return queue_rows("categorical_crossentropy of logits", CategoricalLogits{rows}, shape, workspace, stream);
  }
  queue_rows("categorical_crossentropy", CategoricalProbabilities{rows}, shape, workspace, stream);
}

void queue_binary(const LossShape& shape, const LossArrays& arrays, float scale, SumWorkspace* workspace,
                  BadLabel* bad_label, cudaStream_t stream) {
  // A sample's loss is the mean over its outputs.
  const float factor = scale / static_cast<float>(shape.outputs);
  const BinaryTargets targets = {bad_label, shape.first_row, shape.outputs};
  if (shape.from_logits) {
    return queue_elements("binary_crossentropy of logits", BinaryLogit{targets}, shape, arrays, factor, workspace,
                          stream);
  }
  queue_elements("binary_crossentropy", BinaryProbability{targets}, shape, arrays, factor, workspace, stream);
}

}  // namespace

void queue_loss(const LossShape& shape, const LossArrays& arrays, float scale, SumWorkspace* workspace,
                BadLabel* bad_label, cudaStream_t stream) {
  // Rows that share a weight count by their mean. A single row is its own mean, with the same bits.
  scale /= static_cast<float>(shape.rows_each);
  const Rows rows = {arrays, shape.outputs, scale};
  switch (shape.kind) {
    case LossKind::sparse_categorical_crossentropy:
      return queue_sparse(shape, {rows, bad_label, shape.first_row}, workspace, stream);
    case LossKind::categorical_crossentropy:
      return queue_categorical(shape, rows, workspace, stream);
    case LossKind::binary_crossentropy:
      return queue_binary(shape, arrays, scale, workspace, bad_label, stream);
    case LossKind::mean_squared_error:
      // The derivative of a square, and the mean over outputs, in one factor.
      const auto factor = static_cast<float>(2.0 * scale / static_cast<double>(shape.outputs));
      return queue_elements("mean_squared_error", SquaredError{}, shape, arrays, factor, workspace, stream);
  }
}

}  // namespace holdfast::compute
