#include <vector>

#include "gpu/support/gpu_test.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;

// Samples that are whole vectors or not, and shorter or longer than what a warp draws for.
const std::vector<compute::DropoutShape> kDropoutShapes = {
    {.samples = 1, .elements = 1, .rate = 0.5F},         {.samples = 3, .elements = 5, .rate = 0.5F},
    {.samples = 128, .elements = 84, .rate = 0.25F},     {.samples = 7, .elements = 512, .rate = 0.1F},
    {.samples = 5, .elements = 513, .rate = 0.5F},       {.samples = 2048, .elements = 300, .rate = 0.5F},
    {.samples = 2, .elements = 100'003, .rate = 0.999F}, {.samples = 4, .elements = 100, .rate = 0}};

class DeviceDropout : public GpuTest {
 protected:
  std::unique_ptr<compute::Backend> host_ = compute::make_cpu_backend(1);

  static Values input_of(const compute::DropoutShape& shape) {
    return random_values(1, static_cast<std::size_t>(shape.samples * shape.elements));
  }

  Values on_host(const compute::DropoutShape& shape, const compute::RandomKey& draws) {
    Values values = input_of(shape);
    host_->set_draws(draws);
    host_->dropout(shape)->forward(values.data(), values.data());
    return values;
  }

  Values on_device(const compute::DropoutShape& shape, const compute::RandomKey& draws, std::size_t padding = 0) {
    const DeviceArray input = upload(input_of(shape), padding);
    const DeviceArray output = upload(Values(input.span().size(), 99), padding);
    backend().set_draws(draws);
    backend().dropout(shape)->forward(input.data(), output.data());
    return output.values();
  }
};

TEST_F(DeviceDropout, HasTheBitsOfTheHost) {
  const compute::RandomKey draws = {.seed = 0x0123456789abcdef, .step = 1234567890123, .first_sample = 9876543210};
  for (compute::DropoutShape shape : kDropoutShapes) {
    shape.sequences_per_step = 1000;
    shape.sequence = 17;
    EXPECT_EQ(bit_differences(on_host(shape, draws), on_device(shape, draws)), "")
        << shape.samples << "x" << shape.elements;
    EXPECT_EQ(bit_differences(on_host(shape, draws), on_device(shape, draws, 1)), "")
        << shape.samples << "x" << shape.elements << ", not aligned";
  }
}

TEST_F(DeviceDropout, DrawsAnewForEachOfItsDraws) {
  const compute::DropoutShape shape = {.samples = 16, .elements = 100, .rate = 0.5F};
  const Values first = on_device(shape, {.seed = 1, .step = 2, .first_sample = 3});

  EXPECT_NE(on_device(shape, {.seed = 2, .step = 2, .first_sample = 3}), first);
  EXPECT_NE(on_device(shape, {.seed = 1, .step = 3, .first_sample = 3}), first);
  EXPECT_NE(on_device(shape, {.seed = 1, .step = 2, .first_sample = 4}), first);
  EXPECT_EQ(on_device(shape, {.seed = 1, .step = 2, .first_sample = 3}), first);
}

TEST_F(DeviceDropout, MasksTheGradientAsItMaskedTheInput) {
  const compute::DropoutShape shape = {.samples = 33, .elements = 130, .rate = 0.5F};
  const DeviceArray values = upload(input_of(shape));
  const DeviceArray gradient = upload(input_of(shape));
  backend().set_draws({.seed = 5, .step = 6, .first_sample = 7});
  const auto operation = backend().dropout(shape);

  operation->forward(values.data(), values.data());
  operation->backward(gradient.data(), gradient.data());

  EXPECT_EQ(bit_differences(values.values(), gradient.values()), "");
}

}  // namespace
}  // namespace holdfast
