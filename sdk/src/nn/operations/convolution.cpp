#include "nn/operations/checks.h"
#include "nn/operations/operations.h"
#include "nn/operations/product_operation.h"

namespace holdfast {

namespace {

class ConvolutionProduct final : public ProductOperation<compute::ConvolutionOperation> {
 public:
  explicit ConvolutionProduct(const ConvolutionOptions& options) : options_(options) {}

  std::string name() const override { return "convolution"; }

  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    const Shape& kernel = inputs[1]->shape;
    const Extent2D places = window_places(inputs[0]->shape, {kernel[0], kernel[1]}, options_.strides, options_.padding);
    return {{.shape = {places.height, places.width, kernel[3]}}};
  }

  std::unique_ptr<compute::ConvolutionOperation> make_object(const KernelMaker& maker) const override {
    const Shape& image = maker.input_shape(0);
    const Shape& kernel = maker.input_shape(1);
    return maker.backend.convolution({.samples = maker.samples,
                                      .height = image[0],
                                      .width = image[1],
                                      .channels = image[2],
                                      .filters = kernel[3],
                                      .kernel_height = kernel[0],
                                      .kernel_width = kernel[1],
                                      .stride_height = options_.strides.height,
                                      .stride_width = options_.strides.width,
                                      .padding = options_.padding,
                                      .has_bias = maker.inputs[2].has_value()},
                                     maker.use);
  }

 private:
  const ConvolutionOptions options_;
};

}  // namespace

Value convolution(const Value& input, const Value& kernel, const MaybeValue& bias, const ConvolutionOptions& options) {
  return apply_one(std::make_shared<const ConvolutionProduct>(options), {input, kernel, bias});
}

}  // namespace holdfast
