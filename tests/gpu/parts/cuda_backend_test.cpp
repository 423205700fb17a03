#include "compute/cuda/backend/cuda_backend.h"

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
  const auto unrounded = make_cuda_backend(0, Precision::f32);
  const Floats exact = product(*unrounded, input, kernel, shape);

  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const auto rounding = make_cuda_backend(0, precision);
    const Floats expected =
        product(*unrounded, holdfast::factors_of(precision, input), holdfast::factors_of(precision, kernel), shape);

    const Floats actual = product(*rounding, input, kernel, shape);

    EXPECT_EQ(differences(expected, actual, product_tolerance(precision, shape.inputs)), "") << name(precision);
    EXPECT_NE(bit_differences(exact, actual), "") << name(precision) << ": nothing was rounded";
    EXPECT_EQ(bit_differences(actual, product(*rounding, input, kernel, shape)), "") << name(precision);
  }
}

TEST_F(CudaBackends, SayHowTheyRound) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    EXPECT_TRUE(make_cuda_backend(0, precision)->description().ends_with(", " + std::string(name(precision))));
  }
}

}  // namespace
}  // namespace holdfast::compute
