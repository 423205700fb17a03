// The back ends pool images. An input with one spatial axis is an image of height 1. A volume is pooled along its rows
// first and then over depth and height: the largest of the largest, and the mean of means over windows that are equally
// wide. Rows come first so that the first of equal elements in row-major order gets the gradient.
// docs/decisions/models.md

#include "nn/graph/config.h"
#include "nn/graph/operation.h"
#include "nn/operations/checks.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

class PoolingForward final : public Operation, public std::enable_shared_from_this<PoolingForward> {
 public:
  explicit PoolingForward(PoolingOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "pooling"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& input = inputs[0]->shape;
    // Kernels walk through the images of samples. A weight has one image, and they would read beyond it.
    if (!inputs[0]->has_samples) {
      throw Error(ErrorCode::invalid_argument, "pooling needs a value with samples, not a weight");
    }
    // Windows of poolings have no dilation.
    std::vector<std::int64_t> extents = window_places(
        input, {options_.size, options_.strides, std::vector<std::int64_t>(options_.size.size(), 1), options_.padding});
    extents.push_back(input[input.rank() - 1]);
    return {{.shape = Shape(std::move(extents))}};
  }

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const Shape& input = maker.input_shape(0);
    // An input with one spatial axis is an image of one row.
    const bool is_image = input.rank() == 3;
    auto object = maker.backend.pooling({.kind = options_.kind,
                                         .samples = maker.samples,
                                         .height = is_image ? input[0] : 1,
                                         .width = input[input.rank() - 2],
                                         .channels = input[input.rank() - 1],
                                         .pool_height = is_image ? options_.size[0] : 1,
                                         .pool_width = options_.size.back(),
                                         .stride_height = is_image ? options_.strides[0] : 1,
                                         .stride_width = options_.strides.back(),
                                         .padding = options_.padding},
                                        maker.use);
    // The backward pass needs this object, which knows where the largest elements were.
    return make_function_kernel([object = maker.share(*this, std::move(object))](const KernelArrays& arrays) {
      object->forward(arrays.input(0), arrays.output(0));
    });
  }

  void write_config(ConfigWriter& config) const override {
    // The public functions of pooling may stand between layers, so files hold the operation too.
    config.text("kind", options_.kind == compute::PoolingKind::maximum ? "maximum" : "average");
    config.integers("pool_size", options_.size);
    config.integers("strides", options_.strides);
    config.text("padding", holdfast::name(options_.padding));
  }

 private:
  const PoolingOptions options_;
};

// Input: output gradient. The spec of the forward pass's input is that of the result.
class PoolingBackward final : public Operation {
 public:
  PoolingBackward(std::shared_ptr<const PoolingForward> forward, ValueSpec input)
      : forward_(std::move(forward)), input_(std::move(input)) {}

  std::string name() const override { return "gradient of pooling"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>>) const override { return {input_}; }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel(
        [object = maker.made_by<compute::PoolingOperation>(*forward_)](const KernelArrays& arrays) {
          object->backward(arrays.input(0), arrays.output(0));
        });
  }

 private:
  const std::shared_ptr<const PoolingForward> forward_;
  const ValueSpec input_;
};

std::vector<MaybeValue> PoolingForward::gradient(const GradientRequest& request) const {
  const auto backward = std::make_shared<const PoolingBackward>(shared_from_this(), request.inputs[0]->spec());
  return {apply_one(backward, {request.output_gradients[0]})};
}

void check_pooling_options(const PoolingOptions& options) {
  check_extents("pooling", "window extents", options.size);
  check_extents("pooling", "strides", options.strides);
  const std::size_t axes = options.size.size();
  if (axes >= 1 && axes <= 3 && options.strides.size() == axes && options.padding != Padding::causal) return;
  throw Error(ErrorCode::invalid_argument,
              "pooling needs windows with one to three extents, as many strides, and padding valid or same");
}

Value pool(const Value& input, PoolingOptions options) {
  return apply_one(std::make_shared<const PoolingForward>(std::move(options)), {input});
}

Value pool_volume(const Value& input, const PoolingOptions& options) {
  const Shape& volume = input.shape();
  // This check comes first, so that an error speaks of the volume and not of its rows.
  window_places(volume, {options.size, options.strides, {1, 1, 1}, options.padding});
  const Value rows = pool(reshape(input, Shape{volume[0] * volume[1], volume[2], volume[3]}),
                          {options.kind, {1, options.size[2]}, {1, options.strides[2]}, options.padding});
  // Each place of a row becomes a channel. So one image of depth and height has all of them, and its windows span both
  // axes.
  const std::int64_t width = rows.shape()[1];
  const Value pooled = pool(
      reshape(rows, Shape{volume[0], volume[1], width * volume[3]}),
      {options.kind, {options.size[0], options.size[1]}, {options.strides[0], options.strides[1]}, options.padding});
  return reshape(pooled, Shape{pooled.shape()[0], pooled.shape()[1], width, volume[3]});
}

PoolingOptions pooling_options(compute::PoolingKind kind, const PoolingWindows& windows) {
  return {kind, windows.size, windows.strides.empty() ? windows.size : windows.strides, windows.padding};
}

}  // namespace

Value pooling(const Value& input, const PoolingOptions& options) {
  check_pooling_options(options);
  return options.size.size() == 3 ? pool_volume(input, options) : pool(input, options);
}

Value max_pooling(const Value& x, const PoolingWindows& windows) {
  return pooling(x, pooling_options(compute::PoolingKind::maximum, windows));
}

Value average_pooling(const Value& x, const PoolingWindows& windows) {
  return pooling(x, pooling_options(compute::PoolingKind::average, windows));
}

std::shared_ptr<const Operation> read_pooling_operation(ConfigReader& config) {
  const std::string kind = config.text("kind");
  if (kind != "maximum" && kind != "average") {
    throw Error(ErrorCode::invalid_argument, "pooling of a file is \"maximum\" or \"average\"");
  }
  PoolingOptions options = {kind == "maximum" ? compute::PoolingKind::maximum : compute::PoolingKind::average,
                            config.integers("pool_size"), config.integers("strides"),
                            padding_from_name(config.text("padding"))};
  check_pooling_options(options);
  // A volume is pooled by several operations, so none of a file has three axes.
  if (options.size.size() == 3) {
    throw Error(ErrorCode::invalid_argument, "pooling of a file has one or two spatial axes");
  }
  return std::make_shared<const PoolingForward>(std::move(options));
}

}  // namespace holdfast
