#include "compute/cuda/cuda_backend.h"

#include "gpu/layers/support/layer_test.h"

namespace holdfast::compute {
namespace {

using CudaBackends = LayerTest;

Floats product(Backend& backend, const Floats& input, const Floats& kernel, const DenseShape& shape) {
  const auto operation = backend.dense(shape, {});
  const DeviceArray left(backend.memory(), input), right(backend.memory(), kernel),
      result(backend.memory(), Floats(static_cast<std::size_t>(shape.rows * shape.outputs)));
  operation->forward(left.data(), right.data(), nullptr, result.data());
  return result.values();
}

TEST_F(CudaBackends, RoundFactorsWhereTheyMay) {
  const DenseShape shape = {.rows = 256, .inputs = 1024, .outputs = 512, .has_bias = false};
  const Floats input = values(1, shape.rows * shape.inputs), kernel = values(2, shape.inputs * shape.outputs);
  const auto exact = make_cuda_backend(0, Precision::f32), rounding = make_cuda_backend(0, Precision::tf32);

  const Floats expected = product(*exact, input, kernel, shape);
  const Floats actual = product(*rounding, input, kernel, shape);

  // 10 bits of mantissa: each product is off by up to 2^-10.
  EXPECT_EQ(differences(expected, actual, 0x1p-9F * std::sqrt(static_cast<float>(shape.inputs))), "");
  EXPECT_NE(bit_differences(expected, actual), "") << "nothing was rounded";
  EXPECT_EQ(bit_differences(actual, product(*rounding, input, kernel, shape)), "");
}

TEST_F(CudaBackends, SayHowTheyRound) {
  EXPECT_NE(make_cuda_backend(0, Precision::f32)->description(), make_cuda_backend(0, Precision::tf32)->description());
}

}  // namespace
}  // namespace holdfast::compute
