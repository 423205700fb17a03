// One operation serves one to three spatial axes: an axis that an input lacks has extent 1 and a window of 1. A
// transposed convolution runs the passes of an ordinary one in other roles. So back ends need no kernels for it, and
// libraries bring the fast ones. docs/decisions/models.md

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "compute/window.h"
#include "holdfast/base/error.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"
#include "nn/operations/product_operation.h"

namespace holdfast {

namespace {

[[noreturn]] void refuse_convolution(const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, problem);
}

// One number for each spatial axis.
std::vector<std::int64_t> complete_list(std::string_view option, std::vector<std::int64_t> list, std::size_t axes) {
  // Options of the public function may be left out.
  if (list.empty()) list.assign(axes, 1);
  if (list.size() != axes) {
    refuse_convolution(fmt::format("it needs {} of {} numbers, one for each spatial axis, not {}", option, axes,
                                   fmt::join(list, ", ")));
  }
  check_extents("it", option, list);
  return list;
}

SlidingWindows windows_of(const Shape& kernel, const ConvolutionOptions& options) {
  // The last two axes of a kernel are channels and filters. The rank may be below 2, so the difference is signed.
  const auto axes = static_cast<std::ptrdiff_t>(kernel.rank()) - 2;
  if (axes < 1 || axes > 3) {
    refuse_convolution(fmt::format(
        "it needs a kernel [windows..., channels, filters] of one to three spatial axes, not {}", kernel.to_string()));
  }
  const std::vector<std::int64_t>& extents = kernel.extents();
  return {.sizes = complete_list("kernel extents", {extents.begin(), extents.begin() + axes}, kernel.rank() - 2),
          .strides = complete_list("strides", options.strides, kernel.rank() - 2),
          .dilation_rate = complete_list("dilation_rate", options.dilation_rate, kernel.rank() - 2),
          .padding = options.padding};
}

// Along an axis from 0 (depth) to 2 (width); 1 on axes that the list lacks.
std::int64_t of_axis(std::span<const std::int64_t> list, std::size_t axis) {
  return axis + list.size() < 3 ? 1 : list[axis + list.size() - 3];
}

compute::ConvolutionShape convolution_shape(std::int64_t samples, const Shape& input, const SlidingWindows& windows,
                                            std::int64_t filters, std::int64_t groups, bool has_bias) {
  // Lists are aligned at their last axis: the only axis of a sequence is the width of an image.
  const std::span<const std::int64_t> extents = std::span(input.extents()).first(input.rank() - 1);
  return {.samples = samples,
          .height = of_axis(extents, 1),
          .width = of_axis(extents, 2),
          .channels = input[input.rank() - 1],
          .filters = filters,
          .kernel_height = of_axis(windows.sizes, 1),
          .kernel_width = of_axis(windows.sizes, 2),
          .stride_height = of_axis(windows.strides, 1),
          .stride_width = of_axis(windows.strides, 2),
          .padding = windows.padding,
          .has_bias = has_bias,
          .groups = groups,
          .dilation_height = of_axis(windows.dilation_rate, 1),
          .dilation_width = of_axis(windows.dilation_rate, 2),
          .depth = of_axis(extents, 0),
          .kernel_depth = of_axis(windows.sizes, 0),
          .stride_depth = of_axis(windows.strides, 0),
          .dilation_depth = of_axis(windows.dilation_rate, 0)};
}

class ConvolutionProduct final : public ProductOperation<compute::ConvolutionOperation> {
 public:
  explicit ConvolutionProduct(ConvolutionOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "convolution"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& kernel = inputs[1]->shape;
    // window_places() also checks that the input has the axes which the kernel needs.
    std::vector<std::int64_t> extents = window_places(inputs[0]->shape, windows_of(kernel, options_));
    check_groups(inputs[0]->shape, kernel);
    extents.push_back(kernel[kernel.rank() - 1]);
    return {{.shape = Shape(std::move(extents))}};
  }

  std::unique_ptr<compute::ConvolutionOperation> make_object(const KernelMaker& maker) const override {
    const Shape& kernel = maker.input_shape(1);
    return maker.backend.convolution(
        convolution_shape(maker.samples, maker.input_shape(0), windows_of(kernel, options_), kernel[kernel.rank() - 1],
                          options_.groups, maker.inputs[2].has_value()),
        maker.use);
  }

 private:
  void check_groups(const Shape& input, const Shape& kernel) const {
    const std::int64_t channels = input[input.rank() - 1];
    // A filter sees the channels of its group alone, so the kernel has as many channels as a group.
    const std::int64_t group_channels = kernel[kernel.rank() - 2];
    const std::int64_t filters = kernel[kernel.rank() - 1];
    if (options_.groups >= 1 && group_channels * options_.groups == channels && filters % options_.groups == 0) return;
    refuse_convolution(
        fmt::format("a kernel {} does not fit {} channels in {} groups; it needs the channels of a group, "
                    "and filters that the groups divide",
                    kernel.to_string(), channels, options_.groups));
  }

  const ConvolutionOptions options_;
};

// The backward pass of a convolution to its input, as a forward pass. `convolution` has no bias.
class TransposedObject final : public compute::ConvolutionOperation {
 public:
  explicit TransposedObject(std::unique_ptr<compute::ConvolutionOperation> convolution)
      : convolution_(std::move(convolution)) {}

  // A transposed convolution adds each element to all places of its window, as a gradient to the input does. See
  // Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016.
  void forward(const float* input, const float* kernel, const float*, float* output) override {
    convolution_->backward_input(kernel, input, output);
  }
  void backward_input(const float* kernel, const float* output_gradient, float* input_gradient) override {
    convolution_->forward(output_gradient, kernel, nullptr, input_gradient);
  }
  // Input and output gradient change places: the input of the transposed pass is the output of the ordinary one.
  void backward_weights(const float* input, const float* output_gradient, float* kernel_gradient, float*) override {
    convolution_->backward_weights(output_gradient, input, kernel_gradient, nullptr);
  }

 private:
  const std::unique_ptr<compute::ConvolutionOperation> convolution_;
};

// The kernel is [windows..., filters, channels], and the outputs have given extents.
class TransposedProduct final : public ProductOperation<compute::ConvolutionOperation> {
 public:
  TransposedProduct(ConvolutionOptions options, std::vector<std::int64_t> output_extents)
      : options_(std::move(options)), output_extents_(std::move(output_extents)) {}

  std::string name() const override { return "transposed convolution"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape output = output_of(inputs[1]->shape);
    const std::vector<std::int64_t>& extents = inputs[0]->shape.extents();
    const std::vector<std::int64_t> places(extents.begin(), extents.end() - 1);
    // Several outputs of a stride above 1 lead to the same input. The caller has chosen one of them by its extents.
    HOLDFAST_ASSERT(window_places(output, windows_of(inputs[1]->shape, options_)) == places);
    return {{.shape = output}};
  }

  std::unique_ptr<compute::ConvolutionOperation> make_object(const KernelMaker& maker) const override {
    const Shape& kernel = maker.input_shape(1);
    const compute::ConvolutionShape shape =
        convolution_shape(maker.samples, output_of(kernel), windows_of(kernel, options_), kernel[kernel.rank() - 1], 1,
                          /*has_bias=*/false);
    // The forward pass needs the convolution's backward pass to the input, also where nothing is trained.
    return std::make_unique<TransposedObject>(
        maker.backend.convolution(shape, {.training = maker.use.training, .input_gradient = true}));
  }

 private:
  Shape output_of(const Shape& kernel) const {
    std::vector<std::int64_t> extents = output_extents_;
    extents.push_back(kernel[kernel.rank() - 2]);
    return Shape(std::move(extents));
  }

  const ConvolutionOptions options_;
  const std::vector<std::int64_t> output_extents_;
};

// One axis of a transposed convolution: elements [begin, begin + count) of `extent`, which the operation computes.
struct TransposedAxis {
  std::int64_t extent = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

// These are the rules of Keras (keras/src/backend/common/backend_utils.py). With padding same and a given output
// padding, Keras cuts the result of padding valid.
TransposedAxis transposed_axis(std::int64_t extent, std::int64_t stride, std::int64_t reach, Padding padding,
                               std::optional<std::int64_t> output_padding) {
  // Extents between layers may be larger than those of inputs, and a graph of a file chooses the stride.
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (extent > kMost / stride) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an extent of {} with a stride of {} gives more than 2^40 elements; use a smaller stride",
                            extent, stride));
  }
  // This is the distance from the first place of a window to the last one.
  const std::int64_t apart = (extent - 1) * stride;
  if (!output_padding) {
    // A window that is narrower than its stride leaves a gap after each place, the last one included.
    const std::int64_t whole = padding == Padding::same ? extent * stride : apart + std::max(reach, stride);
    return {whole, 0, whole};
  }
  const std::int64_t more = output_padding.value_or(0);
  if (padding == Padding::valid) return {apart + reach + more, 0, apart + reach + more};
  // Half of a window is cut off at each end, less the output padding in all. The end loses one element more where the
  // rest is odd.
  const std::int64_t missing = reach - reach % 2 - more;
  const std::int64_t begin = missing > 0 ? missing / 2 : 0;
  const std::int64_t count = apart + reach % 2 + more;
  return {std::max(apart + reach, begin + count), begin, count};
}

std::vector<TransposedAxis> transposed_axes(const Shape& input, const SlidingWindows& windows,
                                            const std::vector<std::int64_t>& output_padding) {
  std::vector<TransposedAxis> axes;
  for (std::size_t axis = 0; axis < windows.sizes.size(); ++axis) {
    const std::int64_t reach = compute::dilated_size(windows.sizes[axis], windows.dilation_rate[axis]);
    check_extent("it", "kernel extents that, multiplied by the dilation rate, are", reach);
    // A list is either there for all axes or empty.
    std::optional<std::int64_t> given;
    if (!output_padding.empty()) given = output_padding[axis];
    axes.push_back(transposed_axis(input[axis], windows.strides[axis], reach, windows.padding, given));
    check_extent("it", "output extents", axes.back().extent);
    // An even window over one element can leave nothing, which is refused here.
    check_extent("it", "output extents", axes.back().count);
  }
  return axes;
}

void check_output_padding(const TransposedConvolutionOptions& options, const SlidingWindows& windows) {
  if (windows.padding == Padding::causal) refuse_convolution("it needs padding valid or same, not causal");
  if (options.output_padding.empty()) return;
  // With a stride or more, the output would have room for one window more than the input has elements.
  bool fits = options.output_padding.size() == windows.strides.size();
  for (std::size_t axis = 0; fits && axis < windows.strides.size(); ++axis) {
    fits = options.output_padding[axis] >= 0 && options.output_padding[axis] < windows.strides[axis];
  }
  if (fits) return;
  refuse_convolution(
      fmt::format("it needs an output padding from 0 to below the stride of each axis, not {} with "
                  "strides {}",
                  options.output_padding, windows.strides));
}

void check_kernel(std::string_view function, const Value& x, const Value& kernel) {
  // Back ends take one kernel for all samples.
  if (x.has_samples() && !kernel.has_samples()) return;
  refuse_convolution(fmt::format("{} needs a value with samples and a kernel without, such as a parameter", function));
}

}  // namespace

Value convolution(const Value& input, const Value& kernel, const MaybeValue& bias, const ConvolutionOptions& options) {
  return apply_one(std::make_shared<const ConvolutionProduct>(options), {input, kernel, bias});
}

Value convolution(const Value& x, const Value& kernel, const ConvolutionOptions& options) {
  check_kernel("convolution()", x, kernel);
  return convolution(x, kernel, std::nullopt, options);
}

Value transposed_convolution(const Value& x, const Value& kernel, const TransposedConvolutionOptions& options) {
  check_kernel("transposed_convolution()", x, kernel);
  const ConvolutionOptions convolution_options = {
      .strides = options.strides, .padding = options.padding, .dilation_rate = options.dilation_rate};
  const SlidingWindows windows = windows_of(kernel.shape(), convolution_options);
  check_spatial_axes(x.shape(), windows.sizes.size());
  check_output_padding(options, windows);
  if (kernel.shape()[kernel.shape().rank() - 1] != x.shape()[x.shape().rank() - 1]) {
    refuse_convolution(fmt::format("a kernel {} does not fit {} channels; it needs them on its last axis",
                                   kernel.shape().to_string(), x.shape()[x.shape().rank() - 1]));
  }
  const std::vector<TransposedAxis> axes = transposed_axes(x.shape(), windows, options.output_padding);
  // With a given output padding the result is a slice of that of padding valid.
  ConvolutionOptions computed = convolution_options;
  if (!options.output_padding.empty()) computed.padding = Padding::valid;
  std::vector<std::int64_t> extents;
  for (const TransposedAxis& axis : axes) extents.push_back(axis.extent);
  Value output = apply_one(std::make_shared<const TransposedProduct>(computed, extents), {x, kernel, std::nullopt});
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    // A slice is a function of values, so its gradient comes with it.
    if (axes[axis].count == axes[axis].extent) continue;
    output = slice(output, static_cast<std::int64_t>(axis), axes[axis].begin, axes[axis].begin + axes[axis].count);
  }
  return output;
}

}  // namespace holdfast
