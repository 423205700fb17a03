// Pooling on a device, compared with the host.

#include "compute/window.h"

#include <fmt/format.h>
#include "gpu/layers/support/layer_test.h"

namespace holdfast::compute {
namespace {

class DevicePooling : public LayerTest {
 protected:
  void expect_the_hosts(const PoolingShape& shape, const std::string& what) {
    const std::int64_t outputs = shape.samples * shape.channels *
                                 slide(shape.height, shape.pool_height, shape.stride_height, shape.padding).count *
                                 slide(shape.width, shape.pool_width, shape.stride_width, shape.padding).count;
    // Whole numbers, so that there are ties.
    Floats input = values(1, shape.samples * shape.height * shape.width * shape.channels);
    for (float& value : input) value = std::round(4 * value);
    const Floats gradient = values(2, outputs);
    const auto expected_operation = host().pooling(shape, {.training = true, .input_gradient = true});
    const auto operation = backend().pooling(shape, {.training = true, .input_gradient = true});
    Floats expected(gradient.size()), expected_gradient(input.size());
    const DeviceArray device_input = upload(input), device_gradient = upload(gradient), result = output(outputs),
                      input_gradient = output(static_cast<std::int64_t>(input.size()));

    expected_operation->forward(input.data(), expected.data());
    expected_operation->backward(gradient.data(), expected_gradient.data());
    operation->forward(device_input.data(), result.data());
    operation->backward(device_gradient.data(), input_gradient.data());

    const float tolerance = sum_tolerance(shape.pool_height * shape.pool_width);
    EXPECT_EQ(differences(expected, result.values(), tolerance), "") << what;
    EXPECT_EQ(differences(expected_gradient, input_gradient.values(), tolerance), "") << what;
  }
};

const std::vector<PoolingShape> kPoolingShapes = {{.samples = 128,
                                                   .height = 28,
                                                   .width = 28,
                                                   .channels = 6,
                                                   .pool_height = 2,
                                                   .pool_width = 2,
                                                   .stride_height = 2,
                                                   .stride_width = 2},
                                                  {.samples = 3,
                                                   .height = 7,
                                                   .width = 5,
                                                   .channels = 2,
                                                   .pool_height = 3,
                                                   .pool_width = 3,
                                                   .stride_height = 2,
                                                   .stride_width = 1,
                                                   .padding = Padding::same},
                                                  {.samples = 1,
                                                   .height = 7,
                                                   .width = 8,
                                                   .channels = 1,
                                                   .pool_height = 2,
                                                   .pool_width = 3,
                                                   .stride_height = 2,
                                                   .stride_width = 3},
                                                  {.samples = 16,
                                                   .height = 56,
                                                   .width = 56,
                                                   .channels = 64,
                                                   .pool_height = 3,
                                                   .pool_width = 3,
                                                   .stride_height = 2,
                                                   .stride_width = 2,
                                                   .padding = Padding::same}};

TEST_F(DevicePooling, GivesTheHostsNumbers) {
  for (PoolingShape shape : kPoolingShapes) {
    for (const PoolingKind kind : {PoolingKind::maximum, PoolingKind::average}) {
      shape.kind = kind;
      expect_the_hosts(
          shape, fmt::format("{} of {} images with {} channels", kind == PoolingKind::maximum ? "maximum" : "average",
                             shape.samples, shape.channels));
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
