#include "holdfast/nn/flatten.h"

#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

Flatten::Flatten(const FlattenOptions& options) : Layer(options.name) {}

Shape Flatten::output_shape(const Shape& input) const {
  return {input.element_count()};
}

// Row-major order is kept, so there is nothing to do.
void Flatten::add_stages(ModelStageBuilder&) const {}

void Flatten::write_config(ConfigWriter&) const {}

std::shared_ptr<const Layer> Flatten::from_config(const std::string& name, ConfigReader&) {
  return std::make_shared<const Flatten>(FlattenOptions{.name = name});
}

}  // namespace holdfast
