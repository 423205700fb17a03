#include "nn/graph/operation.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

class PoolingForward final : public Operation, public std::enable_shared_from_this<PoolingForward> {
 public:
  explicit PoolingForward(const PoolingOptions& options) : options_(options) {}

  std::string name() const override { return "pooling"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& image = inputs[0]->shape;
    const Extent2D places = window_places(image, options_.size, options_.strides, options_.padding);
    return {{.shape = {places.height, places.width, image[2]}}};
  }

  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const Shape& image = maker.input_shape(0);
    auto object = maker.backend.pooling({.kind = options_.kind,
                                         .samples = maker.samples,
                                         .height = image[0],
                                         .width = image[1],
                                         .channels = image[2],
                                         .pool_height = options_.size.height,
                                         .pool_width = options_.size.width,
                                         .stride_height = options_.strides.height,
                                         .stride_width = options_.strides.width,
                                         .padding = options_.padding},
                                        maker.use);
    return make_function_kernel([object = maker.share(*this, std::move(object))](const KernelArrays& arrays) {
      object->forward(arrays.input(0), arrays.output(0));
    });
  }

 private:
  const PoolingOptions options_;
};

// Inputs: output gradient, and the input for its shape.
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

}  // namespace

Value pooling(const Value& input, const PoolingOptions& options) {
  return apply_one(std::make_shared<const PoolingForward>(options), {input});
}

}  // namespace holdfast
