// Batch normalization on CPUs by oneDNN (Ioffe and Szegedy, 2015). The rows are samples times positions, so
// an array is described as one image of `rows` x 1 pixels with the channels last. The statistics of a forward
// pass are kept here, because its backward pass needs them and the moving averages are sums over all shards.

#include <fmt/format.h>
#include <optional>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {

namespace {

class CpuBatchNormalization : public BatchNormalizationOperation {
 public:
  CpuBatchNormalization(CpuContext& context, const BatchNormalizationShape& shape, Use use)
      : rows_(static_cast<float>(shape.rows)),
        mean_(static_cast<std::size_t>(shape.channels)),
        variance_(static_cast<std::size_t>(shape.channels)) {
    const std::string operation = fmt::format("batch normalization of [{}, {}]", shape.rows, shape.channels);
    with_named_errors(operation, [&] { make(context, operation, shape, use); });
  }

  void forward_training(const float* input, const float* gamma, const float* beta, float* output) override {
    run_forward(input, gamma, beta, mean_.data(), variance_.data(), output);
  }

  void forward_inference(const float* input, const float* gamma, const float* beta, const float* mean,
                         const float* variance, float* output) override {
    run_forward(input, gamma, beta, mean, variance, output);
  }

  void backward(const float* input, const float* gamma, const float* output_gradient, float* input_gradient,
                float* gamma_gradient, float* beta_gradient) override {
    // oneDNN 2.6.3 refuses to run without the shift, although no gradient depends on it. So it gets another array of
    // the same size. This may go when the pass runs without.
    const float* const any_shift = gamma;
    backward_->run({{DNNL_ARG_SRC, input},
                    {DNNL_ARG_SCALE, gamma},
                    {DNNL_ARG_SHIFT, any_shift},
                    {DNNL_ARG_MEAN, mean_.data()},
                    {DNNL_ARG_VARIANCE, variance_.data()},
                    {DNNL_ARG_DIFF_DST, output_gradient},
                    {DNNL_ARG_DIFF_SRC, input_gradient},
                    {DNNL_ARG_DIFF_SCALE, gamma_gradient},
                    {DNNL_ARG_DIFF_SHIFT, beta_gradient}});
  }

  void contribute(float* contributions) override {
    for (const float mean : mean_) *contributions++ = rows_ * mean;
    for (const float variance : variance_) *contributions++ = rows_ * variance;
    *contributions = rows_;
  }

 private:
  using Forward = dnnl::batch_normalization_forward;
  using Backward = dnnl::batch_normalization_backward;

  void make(CpuContext& context, const std::string& operation, const BatchNormalizationShape& shape, Use use) {
    const MemoryDesc array = float_desc({1, shape.channels, shape.rows, 1}, Tag::nhwc);
    const MemoryDesc channels = float_desc({shape.channels}, Tag::a);
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const auto kind = use.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const auto forward_flags = use.training ? flags : flags | dnnl::normalization_flags::use_global_stats;
    const auto statistics = use.training ? Operand::Role::output : Operand::Role::input;
    const Forward::primitive_desc forward({kind, array, shape.epsilon, forward_flags}, scratch_attributes(),
                                          context.engine());
    forward_ = Primitive::make<Forward>(context, operation, forward,
                                        {{DNNL_ARG_SRC, array, array},
                                         {DNNL_ARG_SCALE, channels, channels},
                                         {DNNL_ARG_SHIFT, channels, channels},
                                         {DNNL_ARG_MEAN, channels, channels, statistics},
                                         {DNNL_ARG_VARIANCE, channels, channels, statistics},
                                         {DNNL_ARG_DST, array, array, Operand::Role::output}});
    if (!use.training) return;

    const auto input_gradient = use.input_gradient ? Operand::Role::output : Operand::Role::discarded_output;
    const Backward::primitive_desc backward({dnnl::prop_kind::backward, array, array, shape.epsilon, flags},
                                            scratch_attributes(), context.engine(), forward);
    backward_ = Primitive::make<Backward>(context, operation, backward,
                                          {{DNNL_ARG_SRC, array, array},
                                           {DNNL_ARG_SCALE, channels, channels},
                                           {DNNL_ARG_SHIFT, channels, channels},
                                           {DNNL_ARG_MEAN, channels, channels},
                                           {DNNL_ARG_VARIANCE, channels, channels},
                                           {DNNL_ARG_DIFF_DST, array, array},
                                           {DNNL_ARG_DIFF_SRC, array, array, input_gradient},
                                           {DNNL_ARG_DIFF_SCALE, channels, channels, Operand::Role::output},
                                           {DNNL_ARG_DIFF_SHIFT, channels, channels, Operand::Role::output}});
  }

  void run_forward(const float* input, const float* gamma, const float* beta, const float* mean, const float* variance,
                   float* output) {
    forward_->run({{DNNL_ARG_SRC, input},
                   {DNNL_ARG_SCALE, gamma},
                   {DNNL_ARG_SHIFT, beta},
                   {DNNL_ARG_MEAN, mean},
                   {DNNL_ARG_VARIANCE, variance},
                   {DNNL_ARG_DST, output}});
  }

  const float rows_;
  std::vector<float> mean_;
  std::vector<float> variance_;
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_;
};

}  // namespace

std::unique_ptr<BatchNormalizationOperation> make_cpu_batch_normalization(CpuContext& context,
                                                                          const BatchNormalizationShape& shape,
                                                                          Use use) {
  return std::make_unique<CpuBatchNormalization>(context, shape, use);
}

}  // namespace holdfast::compute
