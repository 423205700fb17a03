// A dense layer on CPUs: output = input x kernel + bias, and the two products of its backward pass, by
// oneDNN's matrix product. A factor that is needed transposed is only described so (Tag::ba) and not copied.
// The gradient of the bias is a loop of ours. At bf16 input, kernel and output gradient are each a factor of two
// products when the layer trains. So each is rounded once, when it is first needed, and kept until the backward passes
// are done, as on devices. docs/decisions/device-arithmetic.md

#include <fmt/format.h>
#include <optional>
#include <utility>

#include "compute/cpu/kept_array.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"
#include "compute/cpu/primitive.h"
#include "compute/cpu/products/factor_layout.h"
#include "compute/cpu/products/tile_product.h"

namespace holdfast::compute {

static std::string describe(const std::string& pass, const DenseShape& shape) {
  return fmt::format("{} of dense [{}, {}] x [{}, {}]", pass, shape.rows, shape.inputs, shape.inputs, shape.outputs);
}

namespace {

struct Matrix {
  MemoryDesc desc(DataType type = DataType::f32) const { return {{rows, columns}, type, tag}; }

  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Tag tag = Tag::ab;  // row-major; Tag::ba reads a row-major array as its transpose
};

// left x right, plus a bias for each column if there is one.
struct Product {
  Matrix left;
  Matrix right;
  bool has_bias = false;
  bool are_factors_rounded = false;  // by the caller: the arrays are bf16
};

Primitive make_product(CpuContext& context, const std::string& operation, const Product& product) {
  std::optional<Primitive> primitive;
  with_named_errors(operation, [&] {
    // Where the types differ, the primitive rounds into scratch memory.
    const DataType given = product.are_factors_rounded ? DataType::bf16 : DataType::f32;
    ProductFactors factors = {.left = product.left.desc(context.factor_type()),
                              .right = product.right.desc(context.factor_type())};
    if (!context.is_bf16()) factors = spread_in_cache(factors);
    const auto& [left, right] = factors;
    const MemoryDesc result = Matrix{product.left.rows, product.right.columns}.desc();
    std::vector<Operand> operands = {
        {DNNL_ARG_SRC, product.left.desc(given), left},
        {DNNL_ARG_WEIGHTS, product.right.desc(given), right},
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
  CpuDense(CpuContext& context, const DenseShape& shape, Use use)
      : context_(context),
        shape_(shape),
        // In inference each factor is used once, and a copy that is kept would only take memory.
        rounds_once_(context.is_bf16() && use.training) {
    const std::int64_t rows = shape.rows, inputs = shape.inputs, outputs = shape.outputs;
    forward_ = make_product(context, describe("the forward pass", shape),
                            {.left = {rows, inputs},
                             .right = {inputs, outputs},
                             .has_bias = shape.has_bias,
                             .are_factors_rounded = rounds_once_});
    if (use.input_gradient) {
      backward_input_ = make_product(
          context, describe("the gradient of the input", shape),
          // The kernel is [inputs, outputs] in memory and is read as its transpose.
          {.left = {rows, outputs}, .right = {outputs, inputs, Tag::ba}, .are_factors_rounded = rounds_once_});
    }
    if (use.training) {
      backward_weights_ = make_product(
          context, describe("the gradient of the weights", shape),
          // The sum over rows is the inner one of the product, so samples of a shard add
          // up in it.
          {.left = {inputs, rows, Tag::ba}, .right = {rows, outputs}, .are_factors_rounded = rounds_once_});
    }
    if (!rounds_once_) return;
    const auto keep = [&](std::optional<KeptArray>& rounded, const std::string& name, const Matrix& matrix) {
      rounded.emplace(context, describe(name, shape), matrix.desc(), matrix.desc(DataType::bf16));
    };
    keep(input_, "the rounded input", {rows, inputs});
    keep(kernel_, "the rounded kernel", {inputs, outputs});
    keep(output_gradient_, "the rounded gradient of the output", {rows, outputs});
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    if (rounds_once_) {
      input_->set(input);
      kernel_->set(kernel);
      // The gradient in that memory belongs to the step before.
      is_gradient_rounded_ = false;
    }
    forward_->run({{DNNL_ARG_SRC, factor(input_, input)},
                   {DNNL_ARG_WEIGHTS, factor(kernel_, kernel)},
                   {DNNL_ARG_BIAS, bias},
                   {DNNL_ARG_DST, output}});
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    round_gradient(output_gradient);
    backward_input_->run({{DNNL_ARG_SRC, factor(output_gradient_, output_gradient)},
                          {DNNL_ARG_WEIGHTS, factor(kernel_, kernel)},
                          {DNNL_ARG_DST, input_gradient}});
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    round_gradient(output_gradient);
    if (leaves(kernel_gradient)) {
      context_.deferred()->take(shape_, input, output_gradient, kernel_gradient);
    } else {
      backward_weights_->run({{DNNL_ARG_SRC, factor(input_, input)},
                              {DNNL_ARG_WEIGHTS, factor(output_gradient_, output_gradient)},
                              {DNNL_ARG_DST, kernel_gradient}});
    }
    if (!shape_.has_bias) return;
    // oneDNN's own bias gradient belongs to its inner product, which is slower than its matrix product on plain
    // layouts.
    for_each_column_part(context_.threads(), shape_.rows, shape_.outputs, [&](ColumnRange range) {
      vector_kernels().column_sums(output_gradient, shape_.rows, shape_.outputs, range, bias_gradient);
    });
  }

 private:
  // Whether the kernel's gradient is left to the sum of the shards. All of them must come to the same answer, so what
  // oneDNN has is asked for the sizes of all of them.
  bool leaves(const float* kernel_gradient) {
    const DeferredProducts* const deferred = context_.deferred();
    if (deferred == nullptr || context_.is_bf16() || !deferred->wants(shape_, kernel_gradient)) return false;
    if (deferred->limits() != asked_limits_) {
      asked_limits_ = deferred->limits();
      have_tiles_its_bits_ = true;
      for (const std::int64_t samples : {asked_limits_.least_samples, asked_limits_.most_samples}) {
        have_tiles_its_bits_ =
            have_tiles_its_bits_ && have_tiles_its_bits(samples, shape_.inputs, shape_.outputs, context_.threads());
      }
    }
    return have_tiles_its_bits_;
  }

  // The copy, if arrays are rounded once.
  static const void* factor(const std::optional<KeptArray>& rounded, const float* array) {
    return rounded ? rounded->data() : array;
  }

  // By the first backward pass after a forward pass.
  void round_gradient(const float* output_gradient) {
    if (rounds_once_ && !std::exchange(is_gradient_rounded_, true)) output_gradient_->set(output_gradient);
  }

  CpuContext& context_;
  const DenseShape shape_;
  const bool rounds_once_;
  DeferralLimits asked_limits_;  // that have_tiles_its_bits_ is for
  bool have_tiles_its_bits_ = false;
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_input_;
  std::optional<Primitive> backward_weights_;
  // Used if arrays are rounded once.
  std::optional<KeptArray> input_;
  std::optional<KeptArray> kernel_;
  std::optional<KeptArray> output_gradient_;
  bool is_gradient_rounded_ = false;
};

}  // namespace

std::unique_ptr<DenseOperation> make_cpu_dense(CpuContext& context, const DenseShape& shape, Use use) {
  return std::make_unique<CpuDense>(context, shape, use);
}

}  // namespace holdfast::compute
