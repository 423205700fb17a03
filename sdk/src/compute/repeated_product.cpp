#include "compute/repeated_product.h"

#include "compute/backend.h"

namespace holdfast::compute {
namespace {

class RepeatedDense final : public RepeatedProductOperation {
 public:
  RepeatedDense(Backend& backend, const RepeatedProductShape& shape)
      : is_transposed_(shape.is_transposed),
        // The gradient of an input is a product with the transposed kernel.
        dense_(shape.is_transposed
                   ? backend.dense(
                         {.rows = shape.rows, .inputs = shape.outputs, .outputs = shape.inputs, .has_bias = false},
                         {.input_gradient = true})
                   : backend.dense({.rows = shape.rows,
                                    .inputs = shape.inputs,
                                    .outputs = shape.outputs,
                                    .has_bias = shape.has_bias},
                                   {})) {}

  void set_kernel(const float* kernel) override { kernel_ = kernel; }
  void run(const float* input, const float* bias, float* output) override {
    if (is_transposed_) return dense_->backward_input(kernel_, input, output);
    dense_->forward(input, kernel_, bias, output);
  }

 private:
  const bool is_transposed_;
  const std::unique_ptr<DenseOperation> dense_;
  const float* kernel_ = nullptr;
};

}  // namespace

std::unique_ptr<RepeatedProductOperation> repeated_dense(Backend& backend, const RepeatedProductShape& shape) {
  return std::make_unique<RepeatedDense>(backend, shape);
}

std::unique_ptr<RepeatedProductOperation> Backend::repeated_product(const RepeatedProductShape& shape) {
  return repeated_dense(*this, shape);
}

}  // namespace holdfast::compute
