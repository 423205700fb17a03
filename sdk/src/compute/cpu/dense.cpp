// A dense layer on CPUs: output = input x kernel + bias, and the two products of its backward pass, by
// oneDNN's matrix product. A factor that is needed transposed is only described so (Tag::ba) and not copied.
// The gradient of the bias is a loop of ours.

#include <fmt/format.h>
#include <optional>

#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {

static std::string describe(const std::string& pass, const DenseShape& shape) {
  return fmt::format("{} of dense [{}, {}] x [{}, {}]", pass, shape.rows, shape.inputs, shape.inputs, shape.outputs);
}

namespace {

struct Matrix {
  MemoryDesc desc() const { return float_desc({rows, columns}, tag); }

  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Tag tag = Tag::ab;  // row-major; Tag::ba reads a row-major array as its transpose
};

// left x right, plus a bias for each column if there is one.
struct Product {
  Matrix left;
  Matrix right;
  bool has_bias = false;
};

Primitive make_product(CpuContext& context, const std::string& operation, const Product& product) {
  std::optional<Primitive> primitive;
  with_named_errors(operation, [&] {
    const MemoryDesc left = product.left.desc();
    const MemoryDesc right = product.right.desc();
    const MemoryDesc result = Matrix{product.left.rows, product.right.columns}.desc();
    std::vector<Operand> operands = {
        {DNNL_ARG_SRC, left, left},
        {DNNL_ARG_WEIGHTS, right, right},
        {DNNL_ARG_DST, result, result, Operand::Role::output},
    };
    // An empty description means that there is no bias.
    MemoryDesc bias;
    if (product.has_bias) {
      bias = Matrix{1, product.right.columns}.desc();
      operands.push_back({DNNL_ARG_BIAS, bias, bias});
    }
    const dnnl::matmul::primitive_desc desc({left, right, bias, result}, scratch_attributes(), context.engine());
    primitive = Primitive::make<dnnl::matmul>(context, operation, desc, operands);
  });
  return *std::move(primitive);
}

class CpuDense : public DenseOperation {
 public:
  CpuDense(CpuContext& context, const DenseShape& shape, Use use) : threads_(context.threads()), shape_(shape) {
    const std::int64_t rows = shape.rows, inputs = shape.inputs, outputs = shape.outputs;
    forward_ = make_product(context, describe("the forward pass", shape),
                            {.left = {rows, inputs}, .right = {inputs, outputs}, .has_bias = shape.has_bias});
    if (use.input_gradient) {
      backward_input_ = make_product(context, describe("the gradient of the input", shape),
                                     // The kernel is [inputs, outputs] in memory and is read as its transpose.
                                     {.left = {rows, outputs}, .right = {outputs, inputs, Tag::ba}});
    }
    if (use.training) {
      backward_weights_ = make_product(context, describe("the gradient of the weights", shape),
                                       // The sum over rows is the inner one of the product, so samples of a shard add
                                       // up in it.
                                       {.left = {inputs, rows, Tag::ba}, .right = {rows, outputs}});
    }
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    forward_->run({{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output}});
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    backward_input_->run({{DNNL_ARG_SRC, output_gradient}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DST, input_gradient}});
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    backward_weights_->run(
        {{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, output_gradient}, {DNNL_ARG_DST, kernel_gradient}});
    if (!shape_.has_bias) return;
    // oneDNN's own bias gradient belongs to its inner product, which is slower than its matrix product on plain
    // layouts.
    for_each_column_part(threads_, shape_.rows, shape_.outputs, [&](ColumnRange range) {
      vector_kernels().column_sums(output_gradient, shape_.rows, shape_.outputs, range, bias_gradient);
    });
  }

 private:
  const int threads_;
  const DenseShape shape_;
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_input_;
  std::optional<Primitive> backward_weights_;
};

}  // namespace

std::unique_ptr<DenseOperation> make_cpu_dense(CpuContext& context, const DenseShape& shape, Use use) {
  return std::make_unique<CpuDense>(context, shape, use);
}

}  // namespace holdfast::compute
