// Batch normalization on a device, compared with the host and with statistics in double.

#include "gpu/layers/support/layer_test.h"

#include <fmt/format.h>

#include <utility>

namespace holdfast::compute {
namespace {

using DeviceBatchNormalization = LayerTest;

const std::vector<BatchNormalizationShape> kNormalizationShapes = {{.rows = 40, .channels = 3, .epsilon = 1e-3F},
                                                                   {.rows = 2, .channels = 1, .epsilon = 1e-3F},
                                                                   {.rows = 128, .channels = 500, .epsilon = 1e-3F},
                                                                   {.rows = 100352, .channels = 6, .epsilon = 1e-3F},
                                                                   {.rows = 12544, .channels = 64, .epsilon = 1e-5F}};

// The expected numbers are computed in double: the host adds squares in f32 to a growing sum, and is off by 0.5 after
// 100352 rows.
Floats exact_contributions(const BatchNormalizationShape& shape, const Floats& input) {
  const auto rows = static_cast<std::size_t>(shape.rows), channels = static_cast<std::size_t>(shape.channels);
  const auto count = static_cast<double>(rows);
  Floats contributions(2 * channels + 1, static_cast<float>(shape.rows));
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double sum = 0, squares = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += input[row * channels + channel];
    for (std::size_t row = 0; row < rows; ++row) {
      const double deviation = input[row * channels + channel] - sum / count;
      squares += deviation * deviation;
    }
    contributions[channel] = static_cast<float>(sum);
    contributions[channels + channel] = static_cast<float>(squares);
  }
  return contributions;
}

TEST_F(DeviceBatchNormalization, GivesTheHostsNumbers) {
  for (const BatchNormalizationShape& shape : kNormalizationShapes) {
    const Use use = {.training = true, .input_gradient = true};
    const std::int64_t count = shape.rows * shape.channels;
    const Floats input = values(1, count), gradient = values(2, count), gamma = values(3, shape.channels),
                 beta = values(4, shape.channels);
    Floats expected(input.size()), expected_gradient(input.size()), expected_gamma(gamma.size()),
        expected_beta(gamma.size());
    const auto expected_operation = host().batch_normalization(shape, use);
    const auto operation = backend().batch_normalization(shape, use);
    const DeviceArray device_input = upload(input), device_gradient = upload(gradient), device_gamma = upload(gamma),
                      device_beta = upload(beta), result = output(count), input_gradient = output(count),
                      gamma_gradient = output(shape.channels), beta_gradient = output(shape.channels),
                      contributions = output(2 * shape.channels + 1);

    expected_operation->forward_training(input.data(), gamma.data(), beta.data(), expected.data());
    expected_operation->backward(input.data(), gamma.data(), gradient.data(), expected_gradient.data(),
                                 expected_gamma.data(), expected_beta.data());
    operation->forward_training(device_input.data(), device_gamma.data(), device_beta.data(), result.data());
    operation->backward(device_input.data(), device_gamma.data(), device_gradient.data(), input_gradient.data(),
                        gamma_gradient.data(), beta_gradient.data());
    operation->contribute(contributions.data());

    const std::string what = fmt::format("[{}, {}]", shape.rows, shape.channels);
    // The host's variances are sums of squares in f32, with a relative error of up to 2^-24 * sqrt(rows).
    const float tolerance = 0x1p-20F * std::sqrt(static_cast<float>(shape.rows));
    EXPECT_EQ(differences(expected, result.values(), tolerance), "") << what;
    EXPECT_EQ(differences(expected_gradient, input_gradient.values(), tolerance), "") << what;
    // Normalized inputs are up to sqrt(3).
    EXPECT_EQ(differences(expected_gamma, gamma_gradient.values(), 2 * sum_tolerance(shape.rows)), "") << what;
    EXPECT_EQ(differences(expected_beta, beta_gradient.values(), sum_tolerance(shape.rows)), "") << what;
    // Means and variances are below 1. They are rounded, multiplied by rows, and rounded again.
    EXPECT_EQ(differences(exact_contributions(shape, input), contributions.values(),
                          0x1p-23F * static_cast<float>(shape.rows)),
              "")
        << what;
  }
}

TEST_F(DeviceBatchNormalization, TakesTheStatisticsItIsGivenInInference) {
  const BatchNormalizationShape shape = {.rows = 33, .channels = 5, .epsilon = 1e-3F};
  const Floats input = values(1, 33 * 5), gamma = values(2, 5), beta = values(3, 5), mean = values(4, 5);
  Floats variance = values(5, 5);
  for (float& value : variance) value = std::abs(value);
  Floats expected(input.size());
  const auto expected_operation = host().batch_normalization(shape, {});
  const auto operation = backend().batch_normalization(shape, {});
  const DeviceArray device_input = upload(input), device_gamma = upload(gamma), device_beta = upload(beta),
                    device_mean = upload(mean), device_variance = upload(variance), result = output(33 * 5);

  expected_operation->forward_inference(input.data(), gamma.data(), beta.data(), mean.data(), variance.data(),
                                        expected.data());
  operation->forward_inference(device_input.data(), device_gamma.data(), device_beta.data(), device_mean.data(),
                               device_variance.data(), result.data());

  // A few roundings of values up to 60, which is 2 / sqrt(epsilon).
  EXPECT_EQ(differences(expected, result.values(), 4e-5F), "");
}

// Inference replaced the deviations that the backward pass needs.
TEST_F(DeviceBatchNormalization, GoesBackThroughTheLastTrainingPassAlsoAfterInference) {
  const BatchNormalizationShape shape = {.rows = 33, .channels = 5, .epsilon = 1e-3F};
  const auto operation = backend().batch_normalization(shape, {.training = true, .input_gradient = true});
  const DeviceArray input = upload(values(1, 33 * 5)), gradient = upload(values(2, 33 * 5)),
                    gamma = upload(values(3, 5)), beta = upload(values(4, 5)), result = output(33 * 5),
                    input_gradient = output(33 * 5), gamma_gradient = output(5), beta_gradient = output(5);
  const auto train_and_go_back = [&](bool infers) {
    operation->forward_training(input.data(), gamma.data(), beta.data(), result.data());
    const DeviceArray mean = upload(values(5, 5)), variance = upload(Floats(5, 7.0F));
    if (infers) {
      operation->forward_inference(input.data(), gamma.data(), beta.data(), mean.data(), variance.data(),
                                   result.data());
    }
    operation->backward(input.data(), gamma.data(), gradient.data(), input_gradient.data(), gamma_gradient.data(),
                        beta_gradient.data());
    return std::pair(input_gradient.values(), gamma_gradient.values());
  };

  const auto expected = train_and_go_back(false);

  EXPECT_EQ(train_and_go_back(true), expected);
}

}  // namespace
}  // namespace holdfast::compute
