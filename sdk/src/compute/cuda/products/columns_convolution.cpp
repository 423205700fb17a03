// Convolution as products of matrices, for passes that cuDNN has no engine for: each window of an image
// becomes a row of a column matrix, which is multiplied by the kernel (arithmetic/convolution.h). The column
// matrix of a whole batch may be too large, so it is made of some images at a time. docs/decisions/convolution.md

#include <algorithm>
#include <optional>

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/products/cuda_convolution.h"
#include "compute/cuda/products/image_columns.h"
#include "compute/cuda/products/matrix_product.h"
#include "compute/cuda/runtime/array_alignment.h"

namespace holdfast::compute {
namespace {

// The size limit of the column matrix; it is made of as many images at a time as fit. A kernel of 3 x 3 makes nine
// numbers of each, so a whole batch could be larger than all else.
constexpr std::int64_t kColumnFloats = std::int64_t{128} << 18;  // 128 MiB

// Works for all shapes. The kernel needs no copy in another layout, and sums have one order.
class ColumnsConvolution final : public ConvolutionOperation {
 public:
  ColumnsConvolution(CudaContext& context, Precision precision, const ConvolutionShape& shape,
                     const ConvolutionPasses& passes)
      : context_(context),
        precision_(precision),
        plan_(shape),
        has_bias_(shape.has_bias),
        passes_(passes),
        operation_(describe_convolution("a pass", shape)),
        part_samples_(samples_of_part(plan_)) {
    make_products(whole_, part_samples_);
    // An algorithm is chosen for a number of rows, so the last part has products of its own.
    make_products(rest_, plan_.samples % part_samples_);
    reserve_workspace();
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    for_each_part([&](std::int64_t first, std::int64_t samples, Products& products) {
      const float* const columns = columns_of(input + first * plan_.sample_inputs(), samples);
      products.forward->run({.left = columns, .right = kernel, .bias = bias, .result = outputs_of(output, first)},
                            context_.workspace());
    });
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    for_each_part([&](std::int64_t first, std::int64_t samples, Products& products) {
      float* const gradient = input_gradient + first * plan_.sample_inputs();
      // With windows of one element the images are the column matrix, and nothing is copied.
      float* const columns = plan_.is_pointwise() ? gradient : column_memory();
      products.backward_input->run({.left = outputs_of(output_gradient, first), .right = kernel, .result = columns},
                                   context_.workspace());
      if (columns != gradient) {
        // Each input gathers what the windows over it have, so sums have one order and need no atomics.
        gather_column_gradients(context_.stream(), operation_, plan_, samples, columns, gradient);
      }
    });
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    for_each_part([&](std::int64_t first, std::int64_t samples, Products& products) {
      const float* const columns = columns_of(input + first * plan_.sample_inputs(), samples);
      products.backward_weights->run(
          // Parts are added in the order of the images, so the bits depend on the shape and not on when a part ends.
          {.left = columns, .right = outputs_of(output_gradient, first), .result = kernel_gradient, .adds = first > 0},
          context_.workspace());
    });
    if (!has_bias_) return;
    sum_columns(context_.stream(), operation_, all_outputs(), output_gradient, context_.workspace(), bias_gradient);
  }

 private:
  // The products for a number of samples.
  struct Products {
    std::optional<MatrixProduct> forward;
    std::optional<MatrixProduct> backward_input;
    std::optional<MatrixProduct> backward_weights;
  };

  static std::int64_t samples_of_part(const ConvolutionPlan& plan) {
    if (plan.is_pointwise()) return plan.samples;
    const std::int64_t sample_floats = plan.sample_windows() * plan.window_elements();
    // A single image may exceed the limit, and must be computed all the same.
    return std::clamp(kColumnFloats / sample_floats, std::int64_t{1}, plan.samples);
  }

  void make_products(Products& products, std::int64_t samples) {
    if (samples == 0) return;
    const std::int64_t windows = samples * plan_.sample_windows();
    const std::int64_t elements = plan_.window_elements();
    if (passes_.forward) {
      make(products.forward, {.rows = windows,
                              .inner = elements,
                              .columns = plan_.filters,
                              .has_bias = has_bias_,
                              .precision = precision_});
    }
    if (passes_.backward_input) {
      make(products.backward_input, {.rows = windows,
                                     .inner = plan_.filters,
                                     .columns = elements,
                                     .is_right_transposed = true,
                                     .precision = precision_});
    }
    if (passes_.backward_weights) {
      make(products.backward_weights, {.rows = elements,
                                       .inner = windows,
                                       .columns = plan_.filters,
                                       .is_left_transposed = true,
                                       .precision = precision_});
    }
  }

  void make(std::optional<MatrixProduct>& product, const ProductShape& shape) {
    product.emplace(context_, operation_, shape);
    // Products run one after another, so they share their part of the workspace.
    product_bytes_ = std::max(product_bytes_, round_to_block(product->workspace_bytes()));
  }

  // The workspace of the products, followed by the column matrix. Afterwards the sums of columns use the same memory.
  void reserve_workspace() {
    const std::int64_t columns =
        plan_.is_pointwise() ? 0 : part_samples_ * plan_.sample_windows() * plan_.window_elements();
    const std::size_t product_and_columns = product_bytes_ + static_cast<std::size_t>(columns) * sizeof(float);
    context_.reserve_workspace(std::max(product_and_columns, column_sums_bytes(all_outputs())));
  }

  template <class Action>
  void for_each_part(const Action& action) {
    for (std::int64_t first = 0; first < plan_.samples; first += part_samples_) {
      const std::int64_t samples = std::min(part_samples_, plan_.samples - first);
      action(first, samples, samples == part_samples_ ? whole_ : rest_);
    }
  }

  float* column_memory() const { return reinterpret_cast<float*>(context_.workspace() + product_bytes_); }

  const float* columns_of(const float* input, std::int64_t samples) {
    if (plan_.is_pointwise()) return input;
    make_columns(context_.stream(), operation_, plan_, samples, input, column_memory());
    return column_memory();
  }

  template <class Float>
  Float* outputs_of(Float* output, std::int64_t sample) const {
    return output + sample * plan_.sample_windows() * plan_.filters;
  }

  MatrixExtent all_outputs() const { return {plan_.samples * plan_.sample_windows(), plan_.filters}; }

  CudaContext& context_;
  const Precision precision_;
  const ConvolutionPlan plan_;
  const bool has_bias_;
  const ConvolutionPasses passes_;
  const std::string operation_;
  const std::int64_t part_samples_;
  Products whole_;  // for part_samples_ samples
  Products rest_;   // for the remaining samples
  std::size_t product_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ConvolutionOperation> make_columns_convolution(CudaContext& context, Precision precision,
                                                               const ConvolutionShape& shape,
                                                               const ConvolutionPasses& passes) {
  return std::make_unique<ColumnsConvolution>(context, precision, shape, passes);
}

}  // namespace holdfast::compute
