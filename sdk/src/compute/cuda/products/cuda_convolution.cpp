// Convolution on CUDA devices. Each pass takes cuDNN where the library has an engine whose sums have one
// order, and otherwise products of matrices. The choice is made once, when the operation is made, and depends
// on shape, device and library. docs/decisions/convolution.md

#include "compute/cuda/products/cuda_convolution.h"

#include <algorithm>
#include <optional>

#include "compute/arithmetic/convolution.h"
#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/products/cudnn_convolution.h"

namespace holdfast::compute {

namespace {

// Whether the gradient of the weights is a few sums of very many terms: few channels and filters, large images. cuDNN's
// engines with one order of sums do not divide such a sum among multiprocessors; on an H100 that of LeNet-5's first
// layer took half of the step (docs/measurements.md). cuBLASLt divides it, in an order of its own that stays.
bool is_a_few_long_sums(const ConvolutionShape& shape) {
  constexpr std::int64_t kFewSums = 1024;
  constexpr std::int64_t kManyTerms = 32'768;
  // The column matrix of windows is made for it.
  constexpr std::int64_t kMostColumnFloats = std::int64_t{16} << 20;
  if (!is_plain(shape)) return false;
  const ConvolutionPlan plan(shape);
  const std::int64_t terms = plan.samples * plan.sample_windows();
  return plan.window_elements() * plan.filters <= kFewSums && terms >= kManyTerms &&
         terms * plan.window_elements() <= kMostColumnFloats;
}

// Each pass uses cuDNN if that has an engine for it, and else a way that works for the shape.
class CudaConvolution final : public ConvolutionOperation {
 public:
  CudaConvolution(CudaContext& context, Precision precision, const ConvolutionShape& shape, Use use)
      : context_(context), shape_(shape), operation_(describe_convolution("a pass", shape)) {
    find(forward_, precision, ConvolutionPass::forward);
    if (use.input_gradient) find(backward_input_, precision, ConvolutionPass::backward_input);
    if (use.training) {
      if (!is_a_few_long_sums(shape)) find(backward_weights_, precision, ConvolutionPass::backward_weights);
      context.reserve_workspace(column_sums_bytes(outputs()));
    }
    // Chosen for each pass by itself: a library may have an engine for one pass of a shape and none for another.
    const ConvolutionPasses rest = {.forward = !forward_,
                                    .backward_input = use.input_gradient && !backward_input_,
                                    .backward_weights = use.training && !backward_weights_};
    if (rest.forward || rest.backward_input || rest.backward_weights) {
      rest_ = is_plain(shape) ? make_columns_convolution(context, precision, shape, rest)
                              : make_direct_convolution(context, shape, rest);
    }
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    if (!forward_) return rest_->forward(input, kernel, bias, output);
    const CudaContext::StreamLock lock = context_.lock_stream();
    forward_->run(context_, {.images = input, .kernel = kernel, .outputs = output}, context_.workspace());
    // The engine was chosen for the convolution alone, so the bias is a pass of its own.
    if (shape_.has_bias) add_to_columns(context_.stream(), operation_, outputs(), bias, output);
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    if (!backward_input_) return rest_->backward_input(kernel, output_gradient, input_gradient);
    const CudaContext::StreamLock lock = context_.lock_stream();
    backward_input_->run(context_, {.images = input_gradient, .kernel = kernel, .outputs = output_gradient},
                         context_.workspace());
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    if (!backward_weights_) {
      return rest_->backward_weights(input, output_gradient, kernel_gradient, bias_gradient);
    }
    const CudaContext::StreamLock lock = context_.lock_stream();
    backward_weights_->run(context_, {.images = input, .kernel = kernel_gradient, .outputs = output_gradient},
                           context_.workspace());
    if (!shape_.has_bias) return;
    sum_columns(context_.stream(), operation_, outputs(), output_gradient, context_.workspace(), bias_gradient);
  }

 private:
  void find(std::optional<CudnnConvolution>& found, Precision precision, ConvolutionPass pass) {
    found = CudnnConvolution::find({.handle = context_.cudnn()}, precision, shape_, pass);
    // The library refuses a null pointer, even for zero bytes.
    if (found) context_.reserve_workspace(std::max<std::size_t>(found->workspace_bytes(), 1));
  }

  MatrixExtent outputs() const {
    const ConvolutionAxes axes(shape_);
    std::int64_t windows = shape_.samples;
    for (const ConvolutionAxis& axis : axes.needed()) windows *= axis.window.count;
    return {windows, shape_.filters};
  }

  CudaContext& context_;
  const ConvolutionShape shape_;
  const std::string operation_;
  std::optional<CudnnConvolution> forward_;
  std::optional<CudnnConvolution> backward_input_;
  std::optional<CudnnConvolution> backward_weights_;
  std::unique_ptr<ConvolutionOperation> rest_;  // for the other passes; null if cuDNN has all of them
};

}  // namespace

std::unique_ptr<ConvolutionOperation> make_cuda_convolution(CudaContext& context, Precision precision,
                                                            const ConvolutionShape& shape, Use use) {
  return std::make_unique<CudaConvolution>(context, precision, shape, use);
}

}  // namespace holdfast::compute
