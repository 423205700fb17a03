// Dense layers on a device at each precision, within derived tolerances of the host's.

#include "gpu/layers/support/layer_test.h"

#include <fmt/format.h>
#include "holdfast/base/error.h"

namespace holdfast::compute {
namespace {

std::string text(const DenseShape& shape) {
  return fmt::format("[{}, {}] x [{}, {}]", shape.rows, shape.inputs, shape.inputs, shape.outputs);
}

class DeviceDense : public LayerTest, public testing::WithParamInterface<Precision> {
 protected:
  Precision precision() const override { return GetParam(); }
  float tolerance(std::int64_t terms) const { return product_tolerance(precision(), terms); }

  struct Arrays {
    Floats output, input_gradient, kernel_gradient, bias_gradient;
  };

  static Floats input_of(const DenseShape& shape) { return values(1, shape.rows * shape.inputs); }
  static Floats kernel_of(const DenseShape& shape) { return values(2, shape.inputs * shape.outputs); }
  static Floats bias_of(const DenseShape& shape) { return values(3, shape.outputs); }
  static Floats output_gradient_of(const DenseShape& shape) { return values(4, shape.rows * shape.outputs); }

  // The bias is not a factor, and its gradient is not a product.
  Arrays on_host(const DenseShape& shape) {
    const auto operation = host().dense(shape, {.training = true, .input_gradient = true});
    const Floats input = factors_of(input_of(shape)), kernel = factors_of(kernel_of(shape)),
                 gradient = factors_of(output_gradient_of(shape)), given_gradient = output_gradient_of(shape);
    Arrays arrays = {gradient, input, kernel, bias_of(shape)};
    Floats unused = kernel;
    operation->forward(input.data(), kernel.data(), bias_of(shape).data(), arrays.output.data());
    operation->backward_input(kernel.data(), gradient.data(), arrays.input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), arrays.kernel_gradient.data(),
                                arrays.bias_gradient.data());
    operation->backward_weights(input.data(), given_gradient.data(), unused.data(), arrays.bias_gradient.data());
    return arrays;
  }

  Arrays on_device(const DenseShape& shape) {
    const auto operation = backend().dense(shape, {.training = true, .input_gradient = true});
    const DeviceArray input = upload(input_of(shape)), kernel = upload(kernel_of(shape)), bias = upload(bias_of(shape)),
                      gradient = upload(output_gradient_of(shape)), result = output(shape.rows * shape.outputs),
                      input_gradient = output(shape.rows * shape.inputs),
                      kernel_gradient = output(shape.inputs * shape.outputs), bias_gradient = output(shape.outputs);
    operation->forward(input.data(), kernel.data(), bias.data(), result.data());
    operation->backward_input(kernel.data(), gradient.data(), input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), kernel_gradient.data(), bias_gradient.data());
    return {result.values(), input_gradient.values(), kernel_gradient.values(), bias_gradient.values()};
  }

  void expect_numbers_of_the_host(const DenseShape& shape) {
    const Arrays expected = on_host(shape);

    const Arrays actual = on_device(shape);

    EXPECT_EQ(differences(expected.output, actual.output, tolerance(shape.inputs)), "") << text(shape);
    EXPECT_EQ(differences(expected.input_gradient, actual.input_gradient, tolerance(shape.outputs)), "") << text(shape);
    EXPECT_EQ(differences(expected.kernel_gradient, actual.kernel_gradient, tolerance(shape.rows)), "") << text(shape);
    EXPECT_EQ(differences(expected.bias_gradient, actual.bias_gradient, sum_tolerance(shape.rows)), "") << text(shape);
  }

  void expect_the_same_bits_each_time(const DenseShape& shape) {
    const Arrays first = on_device(shape), second = on_device(shape);

    EXPECT_EQ(bit_differences(first.output, second.output), "") << text(shape);
    EXPECT_EQ(bit_differences(first.input_gradient, second.input_gradient), "") << text(shape);
    EXPECT_EQ(bit_differences(first.kernel_gradient, second.kernel_gradient), "") << text(shape);
    EXPECT_EQ(bit_differences(first.bias_gradient, second.bias_gradient), "") << text(shape);
  }
};

const std::vector<DenseShape> kDenseShapes = {{3, 5, 7},     {1, 1, 1},    {4, 33, 9},  {128, 784, 10},
                                              {128, 300, 1}, {31, 13, 17}, {5000, 3, 2}};
// Minutes where kernels are emulated.
const std::vector<DenseShape> kLargeDenseShapes = {{2048, 500, 300}, {64, 4000, 2000}, {1, 8000, 4000}};

TEST_P(DeviceDense, GivesTheHostsNumbers) {
  for (const DenseShape& shape : kDenseShapes) expect_numbers_of_the_host(shape);
}

TEST_P(DeviceDense, GivesTheHostsNumbersForLargeMatrices) {
  for (const DenseShape& shape : kLargeDenseShapes) expect_numbers_of_the_host(shape);
}

TEST_P(DeviceDense, GivesTheSameBitsEachTime) {
  for (const DenseShape& shape : kDenseShapes) expect_the_same_bits_each_time(shape);
  for (const DenseShape& shape : kLargeDenseShapes) expect_the_same_bits_each_time(shape);
}

// The samples of a shard may begin at any row of a batch.
TEST_P(DeviceDense, GivesTheSameBitsWhereverItsRowsBegin) {
  const DenseShape shape = {.rows = 31, .inputs = 13, .outputs = 17};
  const auto operation = backend().dense(shape, {});
  const DeviceArray kernel = upload(kernel_of(shape)), bias = upload(bias_of(shape)), result = output(31 * 17);
  Floats expected;

  for (const std::size_t rows_before : {0, 1, 2, 3, 5}) {
    const DeviceArray input = upload(input_of(shape), rows_before * 13);
    operation->forward(input.data(), kernel.data(), bias.data(), result.data());
    if (rows_before == 0) expected = result.values();
    EXPECT_EQ(bit_differences(expected, result.values()), "") << rows_before;
  }
}

TEST_P(DeviceDense, IgnoresTheBiasPointerWithoutABias) {
  const DenseShape shape = {.rows = 8, .inputs = 12, .outputs = 20, .has_bias = false};
  const auto operation = backend().dense(shape, {.training = true});
  const auto expected_operation = host().dense(shape, {.training = true});
  const Floats input = input_of(shape), kernel = kernel_of(shape), gradient = output_gradient_of(shape);
  const DeviceArray device_input = upload(input), device_kernel = upload(kernel), device_gradient = upload(gradient),
                    result = output(8 * 20), kernel_gradient = output(12 * 20);
  Floats expected(8 * 20), expected_gradient(12 * 20);

  operation->forward(device_input.data(), device_kernel.data(), nullptr, result.data());
  operation->backward_weights(device_input.data(), device_gradient.data(), kernel_gradient.data(), nullptr);
  const Floats inputs = factors_of(input), kernels = factors_of(kernel), gradients = factors_of(gradient);
  expected_operation->forward(inputs.data(), kernels.data(), nullptr, expected.data());
  expected_operation->backward_weights(inputs.data(), gradients.data(), expected_gradient.data(), nullptr);

  EXPECT_EQ(differences(expected, result.values(), tolerance(12)), "");
  EXPECT_EQ(differences(expected_gradient, kernel_gradient.values(), tolerance(8)), "");
}

INSTANTIATE_TEST_SUITE_P(Precisions, DeviceDense, testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return test_name(instance.param); });

using DeviceDenseArrays = LayerTest;

TEST_F(DeviceDenseArrays, AreNamedIfTheyDoNotBeginAtARow) {
  const DenseShape shape = {.rows = 8, .inputs = 12, .outputs = 20};
  const auto operation = backend().dense(shape, {});
  const DeviceArray input = upload(values(1, 8 * 12), 1), kernel = upload(values(2, 12 * 20)),
                    bias = upload(values(3, 20)), result = output(8 * 20);

  EXPECT_THROW(operation->forward(input.data(), kernel.data(), bias.data(), result.data()), Error);
}

}  // namespace
}  // namespace holdfast::compute
