#pragma once

// The operations that layers are made of, as functions of values. Each throws Error{invalid_argument} for operands that
// it cannot take.

#include "compute/backend.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"
#include "nn/graph/value_node.h"

namespace holdfast {

// input x kernel + bias along the last axis.
Value dense(const Value& input, const Value& kernel, const MaybeValue& bias);

// matmul() of values that are several matrices each.
Value batched_matmul(const Value& a, const Value& b);

// As the public function, with a bias for each filter.
Value convolution(const Value& input, const Value& kernel, const MaybeValue& bias, const ConvolutionOptions& options);

struct PoolingOptions {
  compute::PoolingKind kind = compute::PoolingKind::maximum;
  // One number for each spatial axis.
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> strides;
  Padding padding = Padding::valid;
};
// Takes an input [steps, channels], [height, width, channels] or [depth, height, width, channels].
Value pooling(const Value& input, const PoolingOptions& options);

// Element by element, softmax along the last axis. Returns `input` for Activation::linear.
Value activation(const Value& input, Activation activation);

// Over samples and positions of each channel, the last axis.
struct NormalizedBatch {
  Value output;
  // [2 * channels + 1]: rows * mean of each channel, rows * variance of each channel, rows.
  Value contributions;
};
// Without gamma the factor is 1, without beta the offset is 0.
NormalizedBatch batch_normalization(const Value& input, const MaybeValue& gamma, const MaybeValue& beta, float epsilon);
// With given statistics.
Value batch_normalization(const Value& input, const MaybeValue& gamma, const MaybeValue& beta, float epsilon,
                          const Value& mean, const Value& variance);

// Which draws a dropout takes; see compute::DropoutShape.
struct DropoutSequence {
  std::uint64_t sequences_per_step = 1;
  std::uint64_t sequence = 0;
};
Value dropout(const Value& input, float rate, const DropoutSequence& sequence);
// A call of a layer has one sequence of draws in each step. Its further ones are numbered from 2^48 on, which no run
// reaches otherwise: a step has 1024.
inline std::uint64_t further_sequence(std::uint64_t of_call, std::uint64_t number) {
  return of_call + (number << 48);
}

// The same elements in row-major order under another shape.
Value reshape(const Value& input, const Shape& shape);

// a + b, of equal shapes.
Value add(const Value& a, const Value& b);
// The same numbers in an array of its own.
Value copy(const Value& input);

}  // namespace holdfast
