#include "compute/arithmetic/normalization.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compute/backend.h"
#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

TEST(Normalization, IsThatOfTheHost) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kChannels = 3;
  constexpr float kEpsilon = 1e-3F;
  const std::vector<float> input = random_values(kRows * kChannels, 1), gradient = random_values(kRows * kChannels, 2);
  const std::vector<float> gamma = {0.5F, 1, 2}, beta = {0, 1, -1};
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->batch_normalization({.rows = kRows, .channels = kChannels, .epsilon = kEpsilon},
                                                      {.training = true, .input_gradient = true});
  std::vector<float> output(input.size()), input_gradient(input.size()), gamma_gradient(3), beta_gradient(3);
  operation->forward_training(input.data(), gamma.data(), beta.data(), output.data());
  operation->backward(input.data(), gamma.data(), gradient.data(), input_gradient.data(), gamma_gradient.data(),
                      beta_gradient.data());
  std::vector<float> contributions(2 * kChannels + 1);
  operation->contribute(contributions.data());

  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t channel = i % kChannels;
    const float mean = contributions[channel] / kRows;
    const float inverse = 1 / std::sqrt(contributions[kChannels + channel] / kRows + kEpsilon);
    const NormalizationGradient of_channel = {
        mean, inverse, gamma[channel], gamma_gradient[channel], beta_gradient[channel], kRows};

    // A few roundings of values up to 4.
    EXPECT_NEAR(normalized(input[i], mean, inverse) * gamma[channel] + beta[channel], output[i], 4e-6F) << i;
    EXPECT_NEAR(of_channel.of(input[i], gradient[i]), input_gradient[i], 8e-6F) << i;
  }
}

}  // namespace
}  // namespace holdfast::compute
