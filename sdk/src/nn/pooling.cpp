#include "nn/pooling.h"

#include "compute/window.h"
#include "nn/checks.h"

namespace holdfast {

namespace {

class PoolingStage : public ModelStage {
 public:
  explicit PoolingStage(std::unique_ptr<compute::PoolingOperation> operation) : operation_(std::move(operation)) {}

  void forward(const ForwardPass&, const float* input, float* output) override { operation_->forward(input, output); }

  void backward(const BackwardPass&, const ModelStageGradient& arrays) override {
    operation_->backward(arrays.output_gradient, arrays.input_gradient);
  }

 private:
  std::unique_ptr<compute::PoolingOperation> operation_;
};

}  // namespace

void check_pooling(std::string_view kind, const PoolingWindow& window) {
  check_extent(kind, "window extents", window.size);
  check_extent(kind, "strides", window.strides);
}

Shape pooled_shape(const Shape& input, const PoolingWindow& window) {
  check_image(input);
  const auto rows = compute::slide(input[0], window.size.height, window.strides.height, window.padding);
  const auto columns = compute::slide(input[1], window.size.width, window.strides.width, window.padding);
  if (rows.count < 1 || columns.count < 1) reject_window(input, window.size);
  return {rows.count, columns.count, input[2]};
}

void add_pooling(ModelStageBuilder& builder, compute::PoolingKind kind, const PoolingWindow& window) {
  const Shape& input = builder.input_shape();
  auto operation = builder.backend().pooling({.kind = kind,
                                              .samples = builder.samples(),
                                              .height = input[0],
                                              .width = input[1],
                                              .channels = input[2],
                                              .pool_height = window.size.height,
                                              .pool_width = window.size.width,
                                              .stride_height = window.strides.height,
                                              .stride_width = window.strides.width,
                                              .padding = window.padding},
                                             builder.use());
  builder.add(std::make_unique<PoolingStage>(std::move(operation)), {});
}

void write_pooling(ConfigWriter& config, const PoolingWindow& window) {
  config.extent("pool_size", window.size);
  config.extent("strides", window.strides);
  config.text("padding", name(window.padding));
}

PoolingWindow read_pooling(ConfigReader& config) {
  const Extent2D size = config.extent("pool_size");
  const Extent2D strides = config.extent("strides");
  return {.size = size, .strides = strides, .padding = padding_from_name(config.text("padding"))};
}

}  // namespace holdfast
