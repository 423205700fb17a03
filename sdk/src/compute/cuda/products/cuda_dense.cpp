// A dense layer on CUDA devices: three products on cuBLASLt, and the bias gradient as sums of columns. At
// bf16 input, kernel and output gradient are each a factor of two of these products. So each is rounded once,
// when it is first needed, and kept until the backward passes are done. docs/decisions/device-arithmetic.md

#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/products/bfloat16_arrays.h"
#include "compute/cuda/products/matrix_product.h"

namespace holdfast::compute {
namespace {

std::string describe(const std::string& pass, const DenseShape& shape) {
  return fmt::format("{} of dense [{}, {}] x [{}, {}]", pass, shape.rows, shape.inputs, shape.inputs, shape.outputs);
}

// An array rounded to bf16, for several products.
class RoundedArray {
 public:
  RoundedArray(CudaContext& context, const Bfloat16Matrix& matrix)
      : matrix_(matrix), memory_(context.allocate(matrix.bytes())) {}

  void set(const float* array, cudaStream_t stream) { round_to_bfloat16(matrix_, array, data(), stream); }
  Bfloat16* data() const { return reinterpret_cast<Bfloat16*>(memory_.get()); }

 private:
  Bfloat16Matrix matrix_;
  std::shared_ptr<std::byte[]> memory_;
};

// In training at bf16 three arrays are each a factor of two products, so each is rounded once and kept.
class CudaDense final : public DenseOperation {
 public:
  CudaDense(CudaContext& context, Precision precision, const DenseShape& shape, Use use)
      : context_(context),
        shape_(shape),
        // In inference each factor is used once, and a copy that is kept would only take memory.
        rounds_once_(precision == Precision::bf16 && use.training),
        bias_operation_(describe("the gradient of the bias", shape)) {
    make(forward_, describe("the forward pass", shape),
         {.rows = shape.rows,
          .inner = shape.inputs,
          .columns = shape.outputs,
          .has_bias = shape.has_bias,
          .precision = precision,
          .are_factors_given = rounds_once_});
    if (use.input_gradient) {
      make(backward_input_, describe("the gradient of the input", shape),
           {.rows = shape.rows,
            .inner = shape.outputs,
            .columns = shape.inputs,
            .is_right_transposed = true,
            .precision = precision,
            .are_factors_given = rounds_once_});
    }
    if (!use.training) return;
    make(backward_weights_, describe("the gradient of the weights", shape),
         {.rows = shape.inputs,
          .inner = shape.rows,
          .columns = shape.outputs,
          .is_left_transposed = true,
          .precision = precision,
          .are_factors_given = rounds_once_});
    // Also without a bias: one workspace is the largest of all wishes, so this one seldom counts.
    context.reserve_workspace(column_sums_bytes({shape.rows, shape.outputs}));
    if (!rounds_once_) return;
    input_.emplace(context, forward_->left_copy());
    kernel_.emplace(context, forward_->right_copy());
    // The gradient has the same form as the left factor of the other backward product, so one copy serves both.
    output_gradient_.emplace(context, backward_weights_->right_copy());
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    ProductArrays arrays{.left = input, .right = kernel, .bias = bias, .result = output};
    if (rounds_once_) {
      input_->set(input, context_.stream());
      kernel_->set(kernel, context_.stream());
      // The gradient in that memory belongs to the step before.
      is_gradient_rounded_ = false;
      arrays.given_left = input_->data();
      arrays.given_right = kernel_->data();
    }
    forward_->run(arrays, context_.workspace());
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    ProductArrays arrays{.left = output_gradient, .right = kernel, .result = input_gradient};
    if (rounds_once_) {
      arrays.given_left = rounded_gradient(output_gradient);
      arrays.given_right = kernel_->data();
    }
    backward_input_->run(arrays, context_.workspace());
  }

  // The gradient of the bias reads the gradients as they are. Only products take rounded ones.
  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    ProductArrays arrays{.left = input, .right = output_gradient, .result = kernel_gradient};
    if (rounds_once_) {
      arrays.given_left = input_->data();
      arrays.given_right = rounded_gradient(output_gradient);
    }
    backward_weights_->run(arrays, context_.workspace());
    if (!shape_.has_bias) return;
    sum_columns(context_.stream(), bias_operation_, {shape_.rows, shape_.outputs}, output_gradient,
                context_.workspace(), bias_gradient);
  }

 private:
  void make(std::optional<MatrixProduct>& product, const std::string& operation, const ProductShape& shape) {
    product.emplace(context_, operation, shape);
    // The products run one after another, so they share the workspace of the largest.
    context_.reserve_workspace(product->workspace_bytes());
  }

  // Rounds in the first backward pass after a forward pass, whichever of the two that is. The other one finds it done.
  const Bfloat16* rounded_gradient(const float* output_gradient) {
    if (!std::exchange(is_gradient_rounded_, true)) output_gradient_->set(output_gradient, context_.stream());
    return output_gradient_->data();
  }

  CudaContext& context_;
  const DenseShape shape_;
  const bool rounds_once_;
  const std::string bias_operation_;
  std::optional<MatrixProduct> forward_;
  std::optional<MatrixProduct> backward_input_;
  std::optional<MatrixProduct> backward_weights_;
  // Used if arrays are rounded once.
  std::optional<RoundedArray> input_;
  std::optional<RoundedArray> kernel_;
  std::optional<RoundedArray> output_gradient_;
  bool is_gradient_rounded_ = false;
};

}  // namespace

std::unique_ptr<DenseOperation> make_cuda_dense(CudaContext& context, Precision precision, const DenseShape& shape,
                                                Use use) {
  return std::make_unique<CudaDense>(context, precision, shape, use);
}

}  // namespace holdfast::compute
