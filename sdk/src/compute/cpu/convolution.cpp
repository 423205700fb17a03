// Convolution on CPUs by oneDNN's direct algorithm, one primitive for each pass. Callers' arrays are always
// plain: channels last, and the kernel as [height, width, channel, filter], Keras's order; volumes have a depth first.
// Where oneDNN computes faster in another layout, Primitive reorders into scratch memory. At bf16 that rounds, too:
// images, kernel and output gradient are factors. Results are f32, and the gradient of the bias, which is a sum,
// is a loop of ours then.

#include <algorithm>
#include <optional>
#include <string_view>

#include "compute/convolution_axes.h"
#include "compute/cpu/operations.h"
#include "compute/cpu/parts.h"
#include "compute/cpu/primitive.h"

namespace holdfast::compute {

namespace {

// The arrays of a convolution, as oneDNN names their axes, and the layouts that its kernels may choose from.
struct Arrays {
  Arrays(const CpuContext& context, const ConvolutionShape& shape) {
    const ConvolutionAxes axes(shape);
    const bool is_grouped = shape.groups > 1;
    const std::int64_t group_channels = shape.channels / shape.groups;
    const std::int64_t group_filters = shape.filters / shape.groups;
    Dims input_dims = {shape.samples, shape.channels};
    // oneDNN has an axis of groups in the kernel only if there are several.
    Dims kernel_dims =
        is_grouped ? Dims{shape.groups, group_filters, group_channels} : Dims{shape.filters, shape.channels};
    Dims output_dims = {shape.samples, shape.filters};
    rows = shape.samples;
    for (const ConvolutionAxis& axis : axes.needed()) {
      input_dims.push_back(axis.extent);
      kernel_dims.push_back(axis.kernel);
      output_dims.push_back(axis.window.count);
      rows *= axis.window.count;
      strides.push_back(axis.stride);
      extra_distances.push_back(axis.dilation - 1);
      pad_before.push_back(axis.window.pad_before);
      pad_after.push_back(axis.window.pad_after);
    }
    const Tag plain_images = axes.is_volume() ? Tag::ndhwc : Tag::nhwc;
    const Tag plain_kernel =
        axes.is_volume() ? (is_grouped ? Tag::dhwigo : Tag::dhwio) : (is_grouped ? Tag::hwigo : Tag::hwio);
    // oneDNN's blocked layouts gain 12 to 18 % on wide layers (64 -> 64 channels, 56 x 56) and lose up to three times
    // the time on narrow ones (1 -> 6, 28 x 28), where a block is mostly padding. AVX2, one thread, oneDNN 2.6.3,
    // 2026-11.
    const bool is_wide = group_channels % 16 == 0 && group_filters % 16 == 0;
    const Tag image_layout = is_wide ? Tag::any : plain_images;
    input = float_desc(input_dims, plain_images);
    kernel = float_desc(kernel_dims, plain_kernel);
    output = float_desc(output_dims, plain_images);
    const DataType factors = context.factor_type();
    chosen_input = MemoryDesc(input_dims, factors, image_layout);
    chosen_kernel = MemoryDesc(kernel_dims, factors, Tag::any);
    chosen_output = float_desc(output_dims, image_layout);
    input_result = float_desc(input_dims, image_layout);
    kernel_result = float_desc(kernel_dims, Tag::any);
    output_factor = MemoryDesc(output_dims, factors, image_layout);
    has_own_bias_gradient = shape.has_bias && !context.is_bf16();
    if (shape.has_bias) bias = float_desc({shape.filters}, Tag::a);
  }

  Dims strides;
  Dims extra_distances;  // oneDNN's dilations, which count from 0
  Dims pad_before;
  Dims pad_after;
  MemoryDesc input, kernel, output;                       // the callers' layouts
  MemoryDesc chosen_input, chosen_kernel, chosen_output;  // left to oneDNN if that is faster
  MemoryDesc input_result, kernel_result, output_factor;  // the same in backward passes, where they change places
  MemoryDesc bias;                                        // empty without a bias
  bool has_own_bias_gradient = false;                     // oneDNN's
  std::int64_t rows = 1;                                  // samples times positions of the output
};

using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

// One algorithm for all shapes. With `auto` the library would choose one, and each has bits of its own.
Forward::primitive_desc forward_desc(const CpuContext& context, const Arrays& arrays, Use use) {
  // Training keeps what the backward passes ask for. Inference may choose a kernel that keeps nothing.
  const auto kind = use.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto desc =
      arrays.bias.is_zero()
          ? Forward::desc(kind, algorithm, arrays.chosen_input, arrays.chosen_kernel, arrays.chosen_output,
                          arrays.strides, arrays.extra_distances, arrays.pad_before, arrays.pad_after)
          : Forward::desc(kind, algorithm, arrays.chosen_input, arrays.chosen_kernel, arrays.bias, arrays.chosen_output,
                          arrays.strides, arrays.extra_distances, arrays.pad_before, arrays.pad_after);
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
  const BackwardData::desc backward(dnnl::algorithm::convolution_direct, arrays.input_result, arrays.chosen_kernel,
                                    arrays.output_factor, arrays.strides, arrays.extra_distances, arrays.pad_before,
                                    arrays.pad_after);
  // The kernel's layout may differ from that of the forward pass. Primitive reorders the caller's array for each.
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
      !arrays.has_own_bias_gradient
          ? BackwardWeights::desc(algorithm, arrays.chosen_input, arrays.kernel_result, arrays.output_factor,
                                  arrays.strides, arrays.extra_distances, arrays.pad_before, arrays.pad_after)
          : BackwardWeights::desc(algorithm, arrays.chosen_input, arrays.kernel_result, arrays.bias,
                                  arrays.output_factor, arrays.strides, arrays.extra_distances, arrays.pad_before,
                                  arrays.pad_after);
  BackwardWeights::primitive_desc desc(backward, scratch_attributes(), context.engine(), hint);
  // oneDNN 2.6's kernel of 1 x 1 gives wrong sums where it skips pixels and the channels do not fill its blocks of 8.
  // It does so with AVX2, in about half of the runs. tests/unit/nn/layers/reference/Conv2DTranspose.json has a case
  // that finds it, by which a later version of oneDNN can be tried without this loop.
  const bool skips = std::ranges::any_of(arrays.strides, [](std::int64_t stride) { return stride > 1; });
  const bool is_filled = arrays.input.dims()[1] % 8 == 0;
  while (skips && !is_filled && std::string_view(desc.impl_info_str()).starts_with("jit_1x1") && desc.next_impl()) {
  }
  std::vector<Operand> operands = {
      {DNNL_ARG_SRC, arrays.input, desc.src_desc()},
      {DNNL_ARG_DIFF_DST, arrays.output, desc.diff_dst_desc()},
      {DNNL_ARG_DIFF_WEIGHTS, arrays.kernel, desc.diff_weights_desc(), Operand::Role::output},
  };
  if (arrays.has_own_bias_gradient) {
    operands.push_back({DNNL_ARG_DIFF_BIAS, arrays.bias, arrays.bias, Operand::Role::output});
  }
  return Primitive::make<BackwardWeights>(context, operation, desc, operands);
}

class CpuConvolution : public ConvolutionOperation {
 public:
  CpuConvolution(CpuContext& context, const ConvolutionShape& shape, Use use)
      : threads_(context.threads()), filters_(shape.filters), sums_bias_(shape.has_bias && context.is_bf16()) {
    const std::string forward = describe_convolution("the forward pass", shape);
    with_named_errors(forward, [&] {
      const Arrays arrays(context, shape);
      rows_ = arrays.rows;
      // oneDNN asks for the description of the forward pass when it makes a backward one.
      const Forward::primitive_desc hint = forward_desc(context, arrays, use);
      forward_ = make_forward(context, forward, arrays, hint);
      if (use.input_gradient) {
        backward_input_ =
            make_backward_input(context, describe_convolution("the gradient of the input", shape), arrays, hint);
      }
      if (use.training) {
        backward_weights_ =
            make_backward_weights(context, describe_convolution("the gradient of the weights", shape), arrays, hint);
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
    // At bf16 oneDNN has rounded gradients alone, and this sums the caller's.
    if (!sums_bias_) return;
    for_each_column_part(threads_, rows_, filters_, [&](ColumnRange range) {
      vector_kernels().column_sums(output_gradient, rows_, filters_, range, bias_gradient);
    });
  }

 private:
  const int threads_;
  const std::int64_t filters_;
  const bool sums_bias_;
  std::int64_t rows_ = 0;  // of the output, with a column for each filter
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
