#include "holdfast/nn/dense.h"

#include "nn/checks.h"
#include "nn/config.h"
#include "nn/kernel_stage.h"

namespace holdfast {

Dense::Dense(std::int64_t units, const DenseOptions& options) : Layer(options.name), units_(units), options_(options) {
  check_extent("Dense", "units", units);
}

Shape Dense::output_shape(const Shape& input) const {
  std::vector<std::int64_t> extents = input.extents();
  extents.back() = units_;
  return Shape(std::move(extents));
}

std::vector<WeightDescription> Dense::parameters(const Shape& input) const {
  const std::int64_t inputs = last_extent(input);
  return kernel_and_bias({inputs, units_}, {.in = inputs, .out = units_}, options_);
}

void Dense::add_stages(ModelStageBuilder& builder) const {
  auto operation = builder.backend().dense({.rows = builder.samples() * leading_elements(builder.input_shape()),
                                            .inputs = last_extent(builder.input_shape()),
                                            .outputs = units_,
                                            .has_bias = options_.use_bias},
                                           builder.use());
  add_kernel_stage(builder, std::move(operation), options_);
}

void Dense::write_config(ConfigWriter& config) const {
  config.integer("units", units_);
  config.text("activation", holdfast::name(options_.activation));
  config.boolean("use_bias", options_.use_bias);
  config.text("kernel_initializer", options_.kernel_initializer.name());
  config.text("bias_initializer", options_.bias_initializer.name());
}

std::shared_ptr<const Layer> Dense::from_config(const std::string& name, ConfigReader& config) {
  const DenseOptions options = {.activation = activation_from_name(config.text("activation")),
                                .use_bias = config.boolean("use_bias"),
                                .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
                                .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
                                .name = name};
  return std::make_shared<const Dense>(config.integer("units"), options);
}

}  // namespace holdfast
