#include <algorithm>
#include <cmath>

#include "compute/arithmetic/normalization.h"
#include "compute/cuda/column_sums.cuh"
#include "compute/cuda/cuda_operations.h"

namespace holdfast::compute {
namespace {

struct Input {
  const float* input;

  __device__ void operator()(std::int64_t index, std::int64_t, double* sums) const { sums[0] += input[index]; }
};

struct StoreMean {
  double rows;
  float* mean;

  __device__ void operator()(std::int64_t column, const double* sums) const {
    mean[column] = static_cast<float>(sums[0] / rows);
  }
};

struct SquaredDeviation {
  const float* input;
  const float* mean;

  __device__ void operator()(std::int64_t index, std::int64_t column, double* sums) const {
    const double deviation = static_cast<double>(input[index]) - mean[column];
    sums[0] += deviation * deviation;
  }
};

struct StoreVariance {
  double rows;
  double epsilon;
  float* variance;
  float* inverse;

  __device__ void operator()(std::int64_t column, const double* sums) const {
    const double value = sums[0] / rows;
    variance[column] = static_cast<float>(value);
    inverse[column] = static_cast<float>(1 / std::sqrt(value + epsilon));
  }
};

struct ParameterGradientTerms {
  const float* input;
  const float* output_gradient;
  const float* mean;
  const float* inverse;

  __device__ void operator()(std::int64_t index, std::int64_t column, double* sums) const {
    const double gradient = output_gradient[index];
    sums[0] += gradient * normalized(input[index], mean[column], inverse[column]);
    sums[1] += gradient;
  }
};

struct StoreParameterGradients {
  float* gamma_gradient;
  float* beta_gradient;

  __device__ void operator()(std::int64_t column, const double* sums) const {
    gamma_gradient[column] = static_cast<float>(sums[0]);
    beta_gradient[column] = static_cast<float>(sums[1]);
  }
};

__global__ void invert_variances(std::int64_t channels, float epsilon, const float* variance, float* inverse) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (channel >= channels) return;
  inverse[channel] = static_cast<float>(1 / std::sqrt(static_cast<double>(variance[channel]) + epsilon));
}

__global__ void normalize(MatrixExtent extent, const float* mean, const float* inverse, const float* gamma,
                          const float* beta, const float* input, float* output) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kTileColumns + threadIdx.x;
  if (column >= extent.columns) return;
  const float shift = mean[column], factor = inverse[column], scale = gamma[column], added = beta[column];
  std::int64_t row = std::int64_t{blockIdx.y} * kTileRows + threadIdx.y;
  for (; row < extent.rows; row += std::int64_t{gridDim.y} * kTileRows) {
    const std::int64_t index = row * extent.columns + column;
    output[index] = normalized(input[index], shift, factor) * scale + added;
  }
}

struct NormalizationGradientArrays {
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* gamma_gradient;
  const float* beta_gradient;
};

__global__ void normalize_backward(MatrixExtent extent, NormalizationGradientArrays arrays, const float* input,
                                   const float* output_gradient, float* input_gradient) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kTileColumns + threadIdx.x;
  if (column >= extent.columns) return;
  const NormalizationGradient gradient = {arrays.mean[column],          arrays.inverse[column],
                                          arrays.gamma[column],         arrays.gamma_gradient[column],
                                          arrays.beta_gradient[column], static_cast<float>(extent.rows)};
  std::int64_t row = std::int64_t{blockIdx.y} * kTileRows + threadIdx.y;
  for (; row < extent.rows; row += std::int64_t{gridDim.y} * kTileRows) {
    const std::int64_t index = row * extent.columns + column;
    input_gradient[index] = gradient.of(input[index], output_gradient[index]);
  }
}

// [channels] times rows, [channels] times rows, and the rows.
__global__ void contribute_statistics(MatrixExtent extent, const float* mean, const float* variance,
                                      float* contributions) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto rows = static_cast<float>(extent.rows);
  if (channel < extent.columns) {
    contributions[channel] = rows * mean[channel];
    contributions[extent.columns + channel] = rows * variance[channel];
  }
  if (channel == 0) contributions[2 * extent.columns] = rows;
}

class CudaBatchNormalization final : public BatchNormalizationOperation {
 public:
  CudaBatchNormalization(CudaContext& context, const BatchNormalizationShape& shape, Use use)
      : context_(context),
        extent_{shape.rows, shape.channels},
        epsilon_(shape.epsilon),
        has_input_gradient_(use.input_gradient),
        operation_("batch normalization of [" + std::to_string(shape.rows) + ", " + std::to_string(shape.channels) +
                   "]"),
        statistics_memory_(context.allocate(static_cast<std::size_t>(3 * shape.channels) * sizeof(float))),
        mean_(reinterpret_cast<float*>(statistics_memory_.get())),
        variance_(mean_ + shape.channels),
        inverse_(variance_ + shape.channels) {
    if (use.training) context.reserve_workspace(column_sums_bytes(extent_, 2));
  }

  void forward_training(const float* input, const float* gamma, const float* beta, float* output) override {
    const CudaContext::Turn turn = context_.take_turn();
    const auto rows = static_cast<double>(extent_.rows);
    reduce_columns<1>(context_.stream(), operation_, extent_, Input{input}, StoreMean{rows, mean_},
                      context_.workspace());
    reduce_columns<1>(context_.stream(), operation_, extent_, SquaredDeviation{input, mean_},
                      StoreVariance{rows, epsilon_, variance_, inverse_}, context_.workspace());
    normalize<<<tiles(), tile(), 0, context_.stream()>>>(extent_, mean_, inverse_, gamma, beta, input, output);
    check_launch(operation_);
  }

  void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                         const float* variance, float* output) override {
    const CudaContext::Turn turn = context_.take_turn();
    invert_variances<<<channel_blocks(), kChannelThreads, 0, context_.stream()>>>(extent_.columns, epsilon_, variance,
                                                                                  inverse_);
    check_launch(operation_);
    normalize<<<tiles(), tile(), 0, context_.stream()>>>(extent_, mean, inverse_, gamma, beta, input, output);
    check_launch(operation_);
  }

  void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                float* gamma_gradient, float* beta_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    reduce_columns<2>(context_.stream(), operation_, extent_,
                      ParameterGradientTerms{input, output_gradient, mean_, inverse_},
                      StoreParameterGradients{gamma_gradient, beta_gradient}, context_.workspace());
    if (!has_input_gradient_) return;
    normalize_backward<<<tiles(), tile(), 0, context_.stream()>>>(
        extent_, NormalizationGradientArrays{mean_, inverse_, gamma, gamma_gradient, beta_gradient}, input,
        output_gradient, input_gradient);
    check_launch(operation_);
  }

  void contribute(float* contributions) override {
    const CudaContext::Turn turn = context_.take_turn();
    contribute_statistics<<<channel_blocks(), kChannelThreads, 0, context_.stream()>>>(extent_, mean_, variance_,
                                                                                       contributions);
    check_launch(operation_);
  }

 private:
  static constexpr int kChannelThreads = 64;

  unsigned channel_blocks() const { return block_count(extent_.columns, kChannelThreads); }
  dim3 tiles() const {
    constexpr unsigned kMaximumRowBlocks = 4096;
    return {block_count(extent_.columns, kTileColumns),
            std::min(block_count(extent_.rows, kTileRows), kMaximumRowBlocks)};
  }
  static dim3 tile() { return {kTileColumns, kTileRows}; }

  CudaContext& context_;
  const MatrixExtent extent_;  // [samples times positions, channels]
  const float epsilon_;
  const bool has_input_gradient_;
  const std::string operation_;
  const std::shared_ptr<std::byte[]> statistics_memory_;
  float* const mean_;      // [channels], of the last forward_training()
  float* const variance_;  // [channels], of the last forward_training()
  float* const inverse_;   // [channels], 1 / sqrt(variance + epsilon) of the last forward pass
};

}  // namespace

std::unique_ptr<BatchNormalizationOperation> make_cuda_batch_normalization(CudaContext& context,
                                                                           const BatchNormalizationShape& shape,
                                                                           Use use) {
  return std::make_unique<CudaBatchNormalization>(context, shape, use);
}

}  // namespace holdfast::compute
