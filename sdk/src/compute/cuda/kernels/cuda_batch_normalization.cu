// Batch normalization on CUDA devices (Ioffe and Szegedy, 2015), by kernels of ours: cuDNN does not state in
// which order it adds, and these statistics are sums in double in one order. Mean and variance take one pass
// over the input, normalizing takes a second one. docs/decisions/device-arithmetic.md

#include <cmath>

#include "compute/arithmetic/normalization.h"
#include "compute/cuda/kernels/column_sums.cuh"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

// Deviations are taken from one input of the channel, so that squares keep their precision if the mean is far from
// zero. Then one pass over the inputs gives mean and variance (Chan, Golub and LeVeque: "Algorithms for Computing the
// Sample Variance", 1983).
struct Deviation {
  using Loaded = float;
  const float* input;
  double origin;

  __device__ float load(std::int64_t index) const { return input[index]; }
  __device__ void add(float value, double (&sums)[2]) const {
    const double deviation = value - origin;
    sums[0] += deviation;
    sums[1] += deviation * deviation;
  }
};

struct Deviations {
  const float* input;

  // The first row is as near to the mean as any, and every block finds it without a pass before.
  __device__ Deviation of(std::int64_t column) const { return {input, input[column]}; }
};

// Runs once for each channel, when the sums of all blocks are there.
struct StoreStatistics {
  const float* input;
  double rows;
  double epsilon;
  float* mean;
  float* variance;
  float* inverse;

  __device__ void operator()(std::int64_t column, const double* sums) const {
    const double deviation = sums[0] / rows;
    // Var(x) = E(d^2) - E(d)^2 with d = x - origin. Rounding can make it slightly negative.
    const double difference = sums[1] / rows - deviation * deviation;
    // A NaN stays a NaN, so that it is found.
    const double value = difference < 0 ? 0 : difference;
    // Added in double and rounded once.
    mean[column] = static_cast<float>(input[column] + deviation);
    variance[column] = static_cast<float>(value);
    inverse[column] = static_cast<float>(1 / std::sqrt(value + epsilon));
  }
};

// The statistics are loaded once for each column and kept in registers, while a thread goes down its rows.
struct ParameterGradientTerm {
  struct Loaded {
    float input;
    float output_gradient;
  };
  const float* input;
  const float* output_gradient;
  float mean;
  float inverse;

  __device__ Loaded load(std::int64_t index) const { return {input[index], output_gradient[index]}; }
  __device__ void add(const Loaded& loaded, double (&sums)[2]) const {
    const double gradient = loaded.output_gradient;
    // The derivative by gamma, and then that by beta: output = gamma * normalized + beta.
    sums[0] += gradient * normalized(loaded.input, mean, inverse);
    sums[1] += gradient;
  }
};

struct ParameterGradientTerms {
  const float* input;
  const float* output_gradient;
  const float* mean;
  const float* inverse;

  __device__ ParameterGradientTerm of(std::int64_t column) const {
    return {input, output_gradient, mean[column], inverse[column]};
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
  // In double, as in training, so that both passes have the same rounding.
  inverse[channel] = static_cast<float>(1 / std::sqrt(static_cast<double>(variance[channel]) + epsilon));
}

// The parameters of the columns from `column` on. With kInVectors rows are whole vectors. Otherwise a vector may reach
// into the next rows.
template <bool kInVectors, int kCount>
__device__ FloatVector<kCount> load_columns(const float* array, std::size_t column, std::size_t columns) {
  if constexpr (kInVectors) {
    return load<kCount>(array, column);
  } else {
    FloatVector<kCount> values;
    for (int i = 0; i < kCount; ++i) {
      values.at[i] = array[column];
      column = column + 1 == columns ? 0 : column + 1;
    }
    return values;
  }
}

struct NormalizationArrays {
  std::size_t columns;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* beta;
  const float* input;
  float* output;
};

template <bool kInVectors>
struct NormalizePass {
  NormalizationArrays arrays;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> values = load<kCount>(arrays.input, index);
    // Rows follow one another without gaps, so the column follows from the place.
    const std::size_t column = index % arrays.columns;
    const auto shift = load_columns<kInVectors, kCount>(arrays.mean, column, arrays.columns);
    const auto factor = load_columns<kInVectors, kCount>(arrays.inverse, column, arrays.columns);
    const auto scale = load_columns<kInVectors, kCount>(arrays.gamma, column, arrays.columns);
    const auto added = load_columns<kInVectors, kCount>(arrays.beta, column, arrays.columns);
    for (int i = 0; i < kCount; ++i) {
      values.at[i] = normalized(values.at[i], shift.at[i], factor.at[i]) * scale.at[i] + added.at[i];
    }
    store(arrays.output, index, values);
  }
};

struct NormalizationGradientArrays {
  std::size_t columns;
  float rows;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* gamma_gradient;
  const float* beta_gradient;
  const float* input;
  const float* output_gradient;
  float* input_gradient;
};

template <bool kInVectors>
struct NormalizeBackwardPass {
  NormalizationGradientArrays arrays;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> values = load<kCount>(arrays.input, index);
    FloatVector<kCount> gradients = load<kCount>(arrays.output_gradient, index);
    const std::size_t column = index % arrays.columns;
    const auto mean = load_columns<kInVectors, kCount>(arrays.mean, column, arrays.columns);
    const auto inverse = load_columns<kInVectors, kCount>(arrays.inverse, column, arrays.columns);
    const auto gamma = load_columns<kInVectors, kCount>(arrays.gamma, column, arrays.columns);
    const auto of_gamma = load_columns<kInVectors, kCount>(arrays.gamma_gradient, column, arrays.columns);
    const auto of_beta = load_columns<kInVectors, kCount>(arrays.beta_gradient, column, arrays.columns);
    for (int i = 0; i < kCount; ++i) {
      // Both sums over the rows are those of the parameters' gradients, so the input needs no pass of its own.
      const NormalizationGradient gradient = {mean.at[i],     inverse.at[i], gamma.at[i],
                                              of_gamma.at[i], of_beta.at[i], arrays.rows};
      gradients.at[i] = gradient.of(values.at[i], gradients.at[i]);
    }
    store(arrays.input_gradient, index, gradients);
  }
};

// Writes rows * mean [channels], rows * variance [channels], and rows.
__global__ void contribute_statistics(MatrixExtent extent, const float* mean, const float* variance,
                                      float* contributions) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto rows = static_cast<float>(extent.rows);
  if (channel < extent.columns) {
    // Weighted with the rows, because the shards of a batch may differ by one sample.
    contributions[channel] = rows * mean[channel];
    contributions[extent.columns + channel] = rows * variance[channel];
  }
  // Once for all channels. update_moving() divides by the sum of these over the shards.
  if (channel == 0) contributions[2 * extent.columns] = rows;
}

class CudaBatchNormalization final : public BatchNormalizationOperation {
 public:
  CudaBatchNormalization(CudaContext& context, const BatchNormalizationShape& shape, Use use)
      : context_(context),
        extent_{shape.rows, shape.channels},
        epsilon_(shape.epsilon),
        has_input_gradient_(use.input_gradient),
        goes_back_(use.training || use.input_gradient),
        operation_("batch normalization of [" + std::to_string(shape.rows) + ", " + std::to_string(shape.channels) +
                   "]"),
        statistics_memory_(
            context.allocate(static_cast<std::size_t>((goes_back_ ? 4 : 3) * shape.channels) * sizeof(float))),
        mean_(reinterpret_cast<float*>(statistics_memory_.get())),
        variance_(mean_ + shape.channels),
        inverse_(variance_ + shape.channels),
        given_inverse_(goes_back_ ? inverse_ + shape.channels : inverse_) {
    // Inference is given its statistics and sums nothing.
    if (use.training) context.reserve_workspace(column_sums_bytes(extent_, 2));
  }

  void forward_training(const float* input, const float* gamma, const float* beta, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    const auto rows = static_cast<double>(extent_.rows);
    reduce_columns<2>(context_.stream(), operation_, extent_, Deviations{input},
                      StoreStatistics{input, rows, epsilon_, mean_, variance_, inverse_}, context_.workspace());
    normalize({columns(), mean_, inverse_, gamma, beta, input, output});
  }

  // What is kept of the last training pass stays: backward() may follow.
  void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                         const float* variance, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    launch(invert_variances, channel_blocks(), kChannelThreads, context_.stream(), extent_.columns, epsilon_, variance,
           given_inverse_);
    check_launch(operation_.c_str(), {{"channels", extent_.columns}});
    normalize({columns(), mean, given_inverse_, gamma, beta, input, output});
  }

  void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                float* gamma_gradient, float* beta_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    reduce_columns<2>(context_.stream(), operation_, extent_,
                      ParameterGradientTerms{input, output_gradient, mean_, inverse_},
                      StoreParameterGradients{gamma_gradient, beta_gradient}, context_.workspace());
    // The parameters have their gradients. The first layer of a model needs no other.
    if (!has_input_gradient_) return;
    const NormalizationGradientArrays arrays{columns(),       static_cast<float>(extent_.rows),
                                             mean_,           inverse_,
                                             gamma,           gamma_gradient,
                                             beta_gradient,   input,
                                             output_gradient, input_gradient};
    // Matrices and parameters are aligned each for themselves: a shard may begin anywhere in a batch.
    const std::initializer_list<const float*> matrices = {input, output_gradient, input_gradient};
    if (are_in_vectors({gamma, gamma_gradient, beta_gradient})) {
      return run(NormalizeBackwardPass<true>{arrays}, matrices);
    }
    run(NormalizeBackwardPass<false>{arrays}, matrices);
  }

  void contribute(float* contributions) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    launch(contribute_statistics, channel_blocks(), kChannelThreads, context_.stream(), extent_, mean_, variance_,
           contributions);
    check_launch(operation_.c_str(), {{"channels", extent_.columns}});
  }

 private:
  static constexpr int kChannelThreads = 64;

  unsigned channel_blocks() const { return block_count(extent_.columns, kChannelThreads); }
  std::size_t columns() const { return static_cast<std::size_t>(extent_.columns); }

  // Whether parameters of the columns can be loaded in vectors. The operation's own statistics are always aligned.
  bool are_in_vectors(std::initializer_list<const float*> arrays) const {
    return extent_.columns % kVectorFloats == 0 && is_aligned_for_vectors(arrays);
  }

  void normalize(const NormalizationArrays& arrays) {
    const std::initializer_list<const float*> matrices = {arrays.input, arrays.output};
    if (are_in_vectors({arrays.mean, arrays.gamma, arrays.beta})) return run(NormalizePass<true>{arrays}, matrices);
    run(NormalizePass<false>{arrays}, matrices);
  }

  template <class Pass>
  void run(const Pass& pass, std::initializer_list<const float*> matrices) {
    const std::size_t floats = static_cast<std::size_t>(extent_.rows) * columns();
    run_pass(operation_.c_str(), pass, floats, matrices, context_.stream());
  }

  CudaContext& context_;
  const MatrixExtent extent_;  // [samples times positions, channels]
  const float epsilon_;
  const bool has_input_gradient_;
  const bool goes_back_;
  const std::string operation_;
  const std::shared_ptr<std::byte[]> statistics_memory_;
  // Each [channels]. The first three are of the last forward_training().
  float* const mean_;
  float* const variance_;
  float* const inverse_;  // 1 / sqrt(variance + epsilon)
  float* const
      given_inverse_;  // the same of the variance that inference is given; without backward passes that of above
};

}  // namespace

std::unique_ptr<BatchNormalizationOperation> make_cuda_batch_normalization(CudaContext& context,
                                                                           const BatchNormalizationShape& shape,
                                                                           Use use) {
  return std::make_unique<CudaBatchNormalization>(context, shape, use);
}

}  // namespace holdfast::compute
