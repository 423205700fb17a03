#include "compute/cuda/cuda_convolution.h"

#include <algorithm>
#include <optional>

#include "compute/cuda/array_alignment.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/cuda_operations.h"
#include "compute/cuda/cudnn_convolution.h"
#include "compute/cuda/image_columns.h"
#include "compute/cuda/image_layout.h"

namespace holdfast::compute {

std::string describe_convolution(const std::string& pass, const ConvolutionShape& shape) {
  return pass + " of convolution [" + std::to_string(shape.samples) + ", " + std::to_string(shape.height) + ", " +
         std::to_string(shape.width) + ", " + std::to_string(shape.channels) + "] x [" +
         std::to_string(shape.kernel_height) + ", " + std::to_string(shape.kernel_width) + ", " +
         std::to_string(shape.channels) + ", " + std::to_string(shape.filters) + "], strides [" +
         std::to_string(shape.stride_height) + ", " + std::to_string(shape.stride_width) + "], padding " +
         std::string(name(shape.padding));
}

namespace {

// Each pass on cuDNN where that has an engine, else by columns.
class CudaConvolution final : public ConvolutionOperation {
 public:
  CudaConvolution(CudaContext& context, MatrixPrecision precision, const ConvolutionShape& shape, Use use)
      : context_(context), shape_(shape), operation_(describe_convolution("a pass", shape)) {
    const ConvolutionPasses passes = {
        .forward = true, .backward_input = use.input_gradient, .backward_weights = use.training};
    if (is_padded_evenly(shape)) {
      if (passes.forward) forward_ = find(precision, ConvolutionPass::forward);
      if (passes.backward_input) backward_input_ = find(precision, ConvolutionPass::backward_input);
      if (passes.backward_weights) backward_weights_ = find(precision, ConvolutionPass::backward_weights);
    }
    context.reserve_workspace(std::max(library_end_ + kernel_bytes(), column_sums_bytes(outputs())));

    const ConvolutionPasses rest = {.forward = !forward_,
                                    .backward_input = passes.backward_input && !backward_input_,
                                    .backward_weights = passes.backward_weights && !backward_weights_};
    if (rest.forward || rest.backward_input || rest.backward_weights) {
      columns_ = make_columns_convolution(context, precision, shape, rest);
    }
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    if (!forward_) return columns_->forward(input, kernel, bias, output);
    const CudaContext::Turn turn = context_.take_turn();
    forward_->run(context_, {.images = input, .kernel = transposed(kernel), .outputs = output}, context_.workspace());
    if (shape_.has_bias) add_to_columns(context_.stream(), operation_, outputs(), bias, output);
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    if (!backward_input_) return columns_->backward_input(kernel, output_gradient, input_gradient);
    const CudaContext::Turn turn = context_.take_turn();
    backward_input_->run(context_, {.images = input_gradient, .kernel = transposed(kernel), .outputs = output_gradient},
                         context_.workspace());
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    if (!backward_weights_) {
      return columns_->backward_weights(input, output_gradient, kernel_gradient, bias_gradient);
    }
    const CudaContext::Turn turn = context_.take_turn();
    backward_weights_->run(context_, {.images = input, .kernel = kernel_place(), .outputs = output_gradient},
                           context_.workspace());
    transpose(context_.stream(), operation_, shape_.filters, kernel_rows(), kernel_place(), kernel_gradient);
    if (!shape_.has_bias) return;
    sum_columns(context_.stream(), operation_, outputs(), output_gradient, context_.workspace(), bias_gradient);
  }

 private:
  std::optional<CudnnConvolution> find(MatrixPrecision precision, ConvolutionPass pass) {
    std::optional<CudnnConvolution> found = CudnnConvolution::find(context_, precision, shape_, pass);
    if (found) library_end_ = std::max(library_end_, round_to_block(found->workspace_bytes()));
    return found;
  }

  // The library's own workspace comes first, its kernel behind it.
  float* kernel_place() const { return reinterpret_cast<float*>(context_.workspace() + library_end_); }
  std::int64_t kernel_rows() const { return shape_.kernel_height * shape_.kernel_width * shape_.channels; }
  std::size_t kernel_bytes() const { return static_cast<std::size_t>(kernel_rows() * shape_.filters) * sizeof(float); }

  const float* transposed(const float* kernel) {
    transpose(context_.stream(), operation_, kernel_rows(), shape_.filters, kernel, kernel_place());
    return kernel_place();
  }

  MatrixExtent outputs() const {
    const ConvolutionPlan plan(shape_);
    return {plan.samples * plan.sample_windows(), plan.filters};
  }

  CudaContext& context_;
  const ConvolutionShape shape_;
  const std::string operation_;
  std::optional<CudnnConvolution> forward_;
  std::optional<CudnnConvolution> backward_input_;
  std::optional<CudnnConvolution> backward_weights_;
  std::unique_ptr<ConvolutionOperation> columns_;  // the other passes; null where there are none
  std::size_t library_end_ = 0;                    // of cuDNN's part of the workspace
};

}  // namespace

std::unique_ptr<ConvolutionOperation> make_cuda_convolution(CudaContext& context, MatrixPrecision precision,
                                                            const ConvolutionShape& shape, Use use) {
  return std::make_unique<CudaConvolution>(context, precision, shape, use);
}

}  // namespace holdfast::compute
