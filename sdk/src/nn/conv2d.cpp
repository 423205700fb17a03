#include "holdfast/nn/conv2d.h"

#include "compute/window.h"
#include "nn/checks.h"
#include "nn/config.h"
#include "nn/kernel_stage.h"

namespace holdfast {

Conv2D::Conv2D(std::int64_t filters, Extent2D kernel_size, const Conv2DOptions& options)
    : Layer(options.name), filters_(filters), kernel_size_(kernel_size), options_(options) {
  check_extent("Conv2D", "filters", filters);
  check_extent("Conv2D", "kernel extents", kernel_size);
  check_extent("Conv2D", "strides", options.strides);
}

Shape Conv2D::output_shape(const Shape& input) const {
  check_image(input);
  const Extent2D& strides = options_.strides;
  const auto rows = compute::slide(input[0], kernel_size_.height, strides.height, options_.padding);
  const auto columns = compute::slide(input[1], kernel_size_.width, strides.width, options_.padding);
  if (rows.count < 1 || columns.count < 1) reject_window(input, kernel_size_);
  return {rows.count, columns.count, filters_};
}

std::vector<WeightDescription> Conv2D::parameters(const Shape& input) const {
  // The kernel's shape comes first: it is what refuses extents whose products, the fans among them, do not fit.
  const Shape kernel = {kernel_size_.height, kernel_size_.width, input[2], filters_};
  const std::int64_t window = kernel_size_.height * kernel_size_.width;
  return kernel_and_bias(kernel, {.in = window * input[2], .out = window * filters_}, options_);
}

void Conv2D::add_stages(ModelStageBuilder& builder) const {
  const Shape& input = builder.input_shape();
  auto operation = builder.backend().convolution({.samples = builder.samples(),
                                                  .height = input[0],
                                                  .width = input[1],
                                                  .channels = input[2],
                                                  .filters = filters_,
                                                  .kernel_height = kernel_size_.height,
                                                  .kernel_width = kernel_size_.width,
                                                  .stride_height = options_.strides.height,
                                                  .stride_width = options_.strides.width,
                                                  .padding = options_.padding,
                                                  .has_bias = options_.use_bias},
                                                 builder.use());
  add_kernel_stage(builder, std::move(operation), options_);
}

void Conv2D::write_config(ConfigWriter& config) const {
  config.integer("filters", filters_);
  config.extent("kernel_size", kernel_size_);
  config.extent("strides", options_.strides);
  config.text("padding", holdfast::name(options_.padding));
  config.text("activation", holdfast::name(options_.activation));
  config.boolean("use_bias", options_.use_bias);
  config.text("kernel_initializer", options_.kernel_initializer.name());
  config.text("bias_initializer", options_.bias_initializer.name());
}

std::shared_ptr<const Layer> Conv2D::from_config(const std::string& name, ConfigReader& config) {
  const Conv2DOptions options = {.strides = config.extent("strides"),
                                 .padding = padding_from_name(config.text("padding")),
                                 .activation = activation_from_name(config.text("activation")),
                                 .use_bias = config.boolean("use_bias"),
                                 .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
                                 .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
                                 .name = name};
  const std::int64_t filters = config.integer("filters");
  return std::make_shared<const Conv2D>(filters, config.extent("kernel_size"), options);
}

}  // namespace holdfast
