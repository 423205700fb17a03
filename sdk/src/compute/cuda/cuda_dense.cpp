#include <optional>

#include "compute/cuda/columns.h"
#include "compute/cuda/cuda_operations.h"
#include "compute/cuda/matrix_product.h"

namespace holdfast::compute {
namespace {

std::string describe(const std::string& pass, const DenseShape& shape) {
  return pass + " of dense [" + std::to_string(shape.rows) + ", " + std::to_string(shape.inputs) + "] x [" +
         std::to_string(shape.inputs) + ", " + std::to_string(shape.outputs) + "]";
}

class CudaDense final : public DenseOperation {
 public:
  CudaDense(CudaContext& context, Precision precision, const DenseShape& shape, Use use)
      : context_(context), shape_(shape), bias_operation_(describe("the gradient of the bias", shape)) {
    make(forward_, describe("the forward pass", shape),
         {.rows = shape.rows,
          .inner = shape.inputs,
          .columns = shape.outputs,
          .has_bias = shape.has_bias,
          .precision = precision});
    if (use.input_gradient) {
      make(backward_input_, describe("the gradient of the input", shape),
           {.rows = shape.rows,
            .inner = shape.outputs,
            .columns = shape.inputs,
            .is_right_transposed = true,
            .precision = precision});
    }
    if (!use.training) return;
    make(backward_weights_, describe("the gradient of the weights", shape),
         {.rows = shape.inputs,
          .inner = shape.rows,
          .columns = shape.outputs,
          .is_left_transposed = true,
          .precision = precision});
    context.reserve_workspace(column_sums_bytes({shape.rows, shape.outputs}));
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    const CudaContext::Turn turn = context_.take_turn();
    forward_->run({.left = input, .right = kernel, .bias = bias, .result = output}, context_.workspace());
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    backward_input_->run({.left = output_gradient, .right = kernel, .result = input_gradient}, context_.workspace());
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    const CudaContext::Turn turn = context_.take_turn();
    backward_weights_->run({.left = input, .right = output_gradient, .result = kernel_gradient}, context_.workspace());
    if (!shape_.has_bias) return;
    sum_columns(context_.stream(), bias_operation_, {shape_.rows, shape_.outputs}, output_gradient,
                context_.workspace(), bias_gradient);
  }

 private:
  void make(std::optional<MatrixProduct>& product, const std::string& operation, const ProductShape& shape) {
    product.emplace(context_, operation, shape);
    context_.reserve_workspace(product->workspace_bytes());
  }

  CudaContext& context_;
  const DenseShape shape_;
  const std::string bias_operation_;
  std::optional<MatrixProduct> forward_;
  std::optional<MatrixProduct> backward_input_;
  std::optional<MatrixProduct> backward_weights_;
};

}  // namespace

std::unique_ptr<DenseOperation> make_cuda_dense(CudaContext& context, Precision precision, const DenseShape& shape,
                                                Use use) {
  return std::make_unique<CudaDense>(context, precision, shape, use);
}

}  // namespace holdfast::compute
