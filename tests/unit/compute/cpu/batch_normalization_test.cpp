// What an operation of batch normalization keeps from one pass to another. Its numbers are compared with a reference in
// tests/unit/nn/layers/batch_normalization_test.cpp.

#include <gtest/gtest.h>

#include <vector>

#include "compute/backend.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

constexpr BatchNormalizationShape kShape = {.rows = 9, .channels = 5, .epsilon = 1e-3F};
constexpr Use kBoth = {.training = true, .input_gradient = true};

Floats positive_floats(std::int64_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  Floats floats(static_cast<std::size_t>(count));
  for (float& value : floats) value = 0.1F + random.uniform();
  return floats;
}

struct Passes {
  explicit Passes(Use use) : operation(backend->batch_normalization(kShape, use)) {}

  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const std::unique_ptr<BatchNormalizationOperation> operation;
  const Floats input = positive_floats(kShape.rows * kShape.channels, 1);
  const Floats gradient = positive_floats(kShape.rows * kShape.channels, 2);
  const Floats gamma = positive_floats(kShape.channels, 3), beta = positive_floats(kShape.channels, 4);

  void train() {
    Floats output(input.size());
    operation->forward_training(input.data(), gamma.data(), beta.data(), output.data());
  }
  Floats infer() {
    const Floats mean = positive_floats(kShape.channels, 5), variance = positive_floats(kShape.channels, 6);
    Floats output(input.size());
    operation->forward_inference(input.data(), gamma.data(), beta.data(), mean.data(), variance.data(), output.data());
    return output;
  }
  // All gradients, one after the other.
  Floats backward() {
    Floats gradients(input.size()), of_gamma(gamma.size()), of_beta(beta.size());
    operation->backward(input.data(), gamma.data(), gradient.data(), gradients.data(), of_gamma.data(), of_beta.data());
    gradients.insert(gradients.end(), of_gamma.begin(), of_gamma.end());
    gradients.insert(gradients.end(), of_beta.begin(), of_beta.end());
    return gradients;
  }
};

// Inference replaced the deviations that the backward pass needs.
TEST(CpuBatchNormalization, GoesBackThroughTheLastTrainingPassAlsoAfterInference) {
  for (const Use use : {Use{.training = true}, Use{.input_gradient = true}, kBoth}) {
    Passes passes(use);
    passes.train();
    const Floats expected = passes.backward();

    passes.train();
    passes.infer();

    EXPECT_EQ(passes.backward(), expected);
  }
}

TEST(CpuBatchNormalization, InfersTheSameWithAndWithoutTraining) {
  Passes trained(kBoth), untrained({});
  trained.train();

  EXPECT_EQ(trained.infer(), untrained.infer());
}

}  // namespace
}  // namespace holdfast::compute
