// Batch normalization on CPUs (Ioffe and Szegedy, 2015), by loops of ours: mean and variance take one pass over the
// input, normalizing a second one. The statistics of a forward pass are kept here, because its backward pass needs them
// and the moving averages are sums over all shards. See docs/decisions/models.md.

#include <cmath>
#include <vector>

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"

namespace holdfast::compute {

namespace {

class CpuBatchNormalization : public BatchNormalizationOperation {
 public:
  CpuBatchNormalization(const CpuContext& context, const BatchNormalizationShape& shape, Use use)
      : threads_(context.threads()),
        kernels_(vector_kernels()),
        shape_(shape),
        has_input_gradient_(use.input_gradient),
        mean_(static_cast<std::size_t>(shape.channels)),
        variance_(static_cast<std::size_t>(shape.channels)),
        inverse_(static_cast<std::size_t>(shape.channels)),
        given_inverse_(use.training || use.input_gradient ? inverse_.size() : 0) {}

  void forward_training(const float* input, const float* gamma, const float* beta, float* output) override {
    for_each_column_part(threads_, shape_.rows, shape_.channels, [&](ColumnRange range) {
      kernels_.column_moments(input, shape_.rows, shape_.channels, range, mean_.data(), variance_.data());
    });
    invert(variance_.data(), inverse_);
    normalize(input, mean_.data(), inverse_, gamma, beta, output);
  }

  // What is kept of the last training pass stays: backward() may follow.
  void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                         const float* variance, float* output) override {
    std::vector<float>& inverse = given_inverse_.empty() ? inverse_ : given_inverse_;
    invert(variance, inverse);
    normalize(input, mean, inverse, gamma, beta, output);
  }

  void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                float* gamma_gradient, float* beta_gradient) override {
    // The sums are gradients of parameters, and the gradient of the input needs them as well. So they come first.
    const NormalizationRows all = rows_from(input, 0, shape_.rows, mean_.data(), inverse_, gamma);
    for_each_column_part(threads_, shape_.rows, shape_.channels, [&](ColumnRange range) {
      kernels_.normalization_sums(all, output_gradient, range, gamma_gradient, beta_gradient);
    });
    // The first layer of a model needs none.
    if (!has_input_gradient_) return;
    for_each_part(threads_, rows_of_work(), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t offset = begin * shape_.channels;
      kernels_.normalize_backward(rows_from(input, begin, end, mean_.data(), inverse_, gamma), output_gradient + offset,
                                  gamma_gradient, beta_gradient, static_cast<float>(shape_.rows),
                                  input_gradient + offset);
    });
  }

  void contribute(float* contributions) override {
    const auto rows = static_cast<float>(shape_.rows);
    // Weighted with the rows, since shards may differ by one sample. The sum over shards is divided by the last number.
    for (const float mean : mean_) *contributions++ = rows * mean;
    for (const float variance : variance_) *contributions++ = rows * variance;
    *contributions = rows;
  }

 private:
  DividedWork rows_of_work() const { return {.count = shape_.rows, .floats_each = shape_.channels}; }

  NormalizationRows rows_from(const float* input, std::int64_t begin, std::int64_t end, const float* mean,
                              const std::vector<float>& inverse, const float* gamma) const {
    return {.input = input + begin * shape_.channels,
            .rows = end - begin,
            .columns = shape_.channels,
            .mean = mean,
            .inverse = inverse.data(),
            .gamma = gamma};
  }

  void invert(const float* variance, std::vector<float>& inverse) const {
    for (std::size_t c = 0; c < inverse.size(); ++c) {
      // In double: an epsilon that is small compared with the variance would be lost in a float.
      inverse[c] = static_cast<float>(1 / std::sqrt(static_cast<double>(variance[c]) + shape_.epsilon));
    }
  }

  void normalize(const float* input, const float* mean, const std::vector<float>& inverse, const float* gamma,
                 const float* beta, float* output) const {
    for_each_part(threads_, rows_of_work(), [&](std::int64_t begin, std::int64_t end) {
      kernels_.normalize(rows_from(input, begin, end, mean, inverse, gamma), beta, output + begin * shape_.channels);
    });
  }

  const int threads_;
  const VectorKernels& kernels_;
  const BatchNormalizationShape shape_;
  const bool has_input_gradient_;
  // These are kept from the last forward_training().
  std::vector<float> mean_;
  std::vector<float> variance_;
  std::vector<float> inverse_;  // 1 / sqrt(variance + epsilon)
  // The same of the variance that inference is given; empty without backward passes, where `inverse_` has it.
  std::vector<float> given_inverse_;
};

}  // namespace

std::unique_ptr<BatchNormalizationOperation> make_cpu_batch_normalization(const CpuContext& context,
                                                                          const BatchNormalizationShape& shape,
                                                                          Use use) {
  return std::make_unique<CpuBatchNormalization>(context, shape, use);
}

}  // namespace holdfast::compute
