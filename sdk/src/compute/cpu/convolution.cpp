// Convolution on CPUs by oneDNN's direct algorithm, one primitive for each pass. Callers' arrays are always
// plain: channels last, and the kernel as [height, width, channel, filter], Keras's order. Where oneDNN
// computes faster in another layout, Primitive reorders into scratch memory.

#include <fmt/format.h>
#include <optional>

#include "compute/cpu/operations.h"
#include "compute/cpu/primitive.h"
#include "compute/window.h"

namespace holdfast::compute {

static std::string describe(const std::string& pass, const ConvolutionShape& shape) {
  return fmt::format("{} of convolution [{}, {}, {}, {}] x [{}, {}, {}, {}], strides [{}, {}], padding {}", pass,
                     shape.samples, shape.height, shape.width, shape.channels, shape.kernel_height, shape.kernel_width,
                     shape.channels, shape.filters, shape.stride_height, shape.stride_width, name(shape.padding));
}

namespace {

// The arrays of a convolution, as oneDNN names their axes, and the layouts that its kernels may choose from.
struct Arrays {
  explicit Arrays(const ConvolutionShape& shape)
      : rows(slide(shape.height, shape.kernel_height, shape.stride_height, shape.padding)),
        columns(slide(shape.width, shape.kernel_width, shape.stride_width, shape.padding)),
        strides{shape.stride_height, shape.stride_width},
        pad_before{rows.pad_before, columns.pad_before},
        pad_after{rows.pad_after, columns.pad_after} {
    const Dims input_dims = {shape.samples, shape.channels, shape.height, shape.width};
    const Dims kernel_dims = {shape.filters, shape.channels, shape.kernel_height, shape.kernel_width};
    const Dims output_dims = {shape.samples, shape.filters, rows.count, columns.count};
    // oneDNN's blocked layouts gain 12 to 18 % on wide layers (64 -> 64 channels, 56 x 56) and lose up to three times
    // the time on narrow ones (1 -> 6, 28 x 28), where a block is mostly padding. AVX2, one thread, oneDNN 2.6.3,
    // 2026-11.
    const bool is_wide = shape.channels % 16 == 0 && shape.filters % 16 == 0;
    const Tag image_layout = is_wide ? Tag::any : Tag::nhwc;
    input = float_desc(input_dims, Tag::nhwc);
    kernel = float_desc(kernel_dims, Tag::hwio);
    output = float_desc(output_dims, Tag::nhwc);
    chosen_input = float_desc(input_dims, image_layout);
    chosen_kernel = float_desc(kernel_dims, Tag::any);
    chosen_output = float_desc(output_dims, image_layout);
    if (shape.has_bias) bias = float_desc({shape.filters}, Tag::a);
  }

  const Window rows;
  const Window columns;
  const Dims strides;
  const Dims pad_before;
  const Dims pad_after;
  MemoryDesc input, kernel, output;                       // the callers' layouts
  MemoryDesc chosen_input, chosen_kernel, chosen_output;  // left to oneDNN if that is faster
  MemoryDesc bias;                                        // empty without a bias
};

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

Forward::primitive_desc forward_desc(const CpuContext& context, const Arrays& arrays, Use use) {
  const auto kind = use.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto desc = arrays.bias.is_zero()
                        ? Forward::desc(kind, algorithm, arrays.chosen_input, arrays.chosen_kernel,
                                        arrays.chosen_output, arrays.strides, arrays.pad_before, arrays.pad_after)
                        : Forward::desc(kind, algorithm, arrays.chosen_input, arrays.chosen_kernel, arrays.bias,
                                        arrays.chosen_output, arrays.strides, arrays.pad_before, arrays.pad_after);
  return {desc, scratch_attributes(), context.engine()};
}

Primitive make_forward(CpuContext& context, const std::string& operation, const Arrays& arrays,
                       const Forward::primitive_desc& desc) {
  std::vector<Operand> operands = {
      {DNNL_ARG_SRC, arrays.input, desc.src_desc()},
      {DNNL_ARG_WEIGHTS, arrays.kernel, desc.weights_desc()},
      {DNNL_ARG_DST, arrays.output, desc.dst_desc(), Operand::Role::output},
  };
  if (!arrays.bias.is_zero()) operands.push_back({DNNL_ARG_BIAS, arrays.bias, arrays.bias});
  return Primitive::make<Forward>(context, operation, desc, operands);
}

Primitive make_backward_input(CpuContext& context, const std::string& operation, const Arrays& arrays,
                              const Forward::primitive_desc& hint) {
  const BackwardData::desc backward(dnnl::algorithm::convolution_direct, arrays.chosen_input, arrays.chosen_kernel,
                                    arrays.chosen_output, arrays.strides, arrays.pad_before, arrays.pad_after);
  const BackwardData::primitive_desc desc(backward, scratch_attributes(), context.engine(), hint);
  return Primitive::make<BackwardData>(
      context, operation, desc,
      {
          {DNNL_ARG_WEIGHTS, arrays.kernel, desc.weights_desc()},
          {DNNL_ARG_DIFF_DST, arrays.output, desc.diff_dst_desc()},
          {DNNL_ARG_DIFF_SRC, arrays.input, desc.diff_src_desc(), Operand::Role::output},
      });
}

Primitive make_backward_weights(CpuContext& context, const std::string& operation, const Arrays& arrays,
                                const Forward::primitive_desc& hint) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto backward =
      arrays.bias.is_zero()
          ? BackwardWeights::desc(algorithm, arrays.chosen_input, arrays.chosen_kernel, arrays.chosen_output,
                                  arrays.strides, arrays.pad_before, arrays.pad_after)
          : BackwardWeights::desc(algorithm, arrays.chosen_input, arrays.chosen_kernel, arrays.bias,
                                  arrays.chosen_output, arrays.strides, arrays.pad_before, arrays.pad_after);
  const BackwardWeights::primitive_desc desc(backward, scratch_attributes(), context.engine(), hint);
  std::vector<Operand> operands = {
      {DNNL_ARG_SRC, arrays.input, desc.src_desc()},
      {DNNL_ARG_DIFF_DST, arrays.output, desc.diff_dst_desc()},
      {DNNL_ARG_DIFF_WEIGHTS, arrays.kernel, desc.diff_weights_desc(), Operand::Role::output},
  };
  if (!arrays.bias.is_zero()) {
    operands.push_back({DNNL_ARG_DIFF_BIAS, arrays.bias, arrays.bias, Operand::Role::output});
  }
  return Primitive::make<BackwardWeights>(context, operation, desc, operands);
}

class CpuConvolution : public ConvolutionOperation {
 public:
  CpuConvolution(CpuContext& context, const ConvolutionShape& shape, Use use) {
    const std::string forward = describe("the forward pass", shape);
    with_named_errors(forward, [&] {
      const Arrays arrays(shape);
      const Forward::primitive_desc hint = forward_desc(context, arrays, use);
      forward_ = make_forward(context, forward, arrays, hint);
      if (use.input_gradient) {
        backward_input_ = make_backward_input(context, describe("the gradient of the input", shape), arrays, hint);
      }
      if (use.training) {
        backward_weights_ =
            make_backward_weights(context, describe("the gradient of the weights", shape), arrays, hint);
      }
    });
  }

  void forward(const float* input, const float* kernel, const float* bias, float* output) override {
    forward_->run({{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, output}});
  }

  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    backward_input_->run(
        {{DNNL_ARG_WEIGHTS, kernel}, {DNNL_ARG_DIFF_DST, output_gradient}, {DNNL_ARG_DIFF_SRC, input_gradient}});
  }

  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient,
                        float* bias_gradient) override {
    backward_weights_->run({{DNNL_ARG_SRC, input},
                            {DNNL_ARG_DIFF_DST, output_gradient},
                            {DNNL_ARG_DIFF_WEIGHTS, kernel_gradient},
                            {DNNL_ARG_DIFF_BIAS, bias_gradient}});
  }

 private:
  std::optional<Primitive> forward_;
  std::optional<Primitive> backward_input_;
  std::optional<Primitive> backward_weights_;
};

}  // namespace

std::unique_ptr<ConvolutionOperation> make_cpu_convolution(CpuContext& context, const ConvolutionShape& shape,
                                                           Use use) {
  return std::make_unique<CpuConvolution>(context, shape, use);
}

}  // namespace holdfast::compute
