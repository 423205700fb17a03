// Optimizers, moving averages and gaps on a device, compared bit for bit with the host.

#include "holdfast/optim/optimizer.h"

#include <cmath>

#include "gpu/support/gpu_test.h"
#include "holdfast/optim/adadelta.h"
#include "holdfast/optim/adam.h"
#include "holdfast/optim/adamw.h"
#include "holdfast/optim/lion.h"
#include "holdfast/optim/nadam.h"
#include "holdfast/optim/rmsprop.h"
#include "holdfast/optim/sgd.h"
#include "optim/update_pass.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;

// Sizes that are whole vectors, blocks or grids, and sizes with a remainder.
const std::vector<std::size_t> kOptimizerSizes = {1, 3, 4, 5, 255, 1024, 1025, 4099, 100'003};
constexpr std::int64_t kSteps = 5;

class DeviceOptimizer : public GpuTest {
 protected:
  // The parameters and slots after a few steps, on both sides.
  void expect_bits_of_the_host(const Optimizer& optimizer, std::size_t size, std::size_t padding) {
    std::vector<Values> host = {random_values(1, size)};
    for (std::size_t slot = 0; slot < optimizer.slot_names().size(); ++slot) host.emplace_back(size);
    std::vector<DeviceArray> device;
    for (const Values& array : host) device.push_back(upload(array, padding));
    std::vector<std::span<float>> host_slots(host.begin() + 1, host.end());
    std::vector<std::span<float>> device_slots;
    for (std::size_t slot = 1; slot < device.size(); ++slot) device_slots.push_back(device[slot].span());

    for (std::int64_t step = 1; step <= kSteps; ++step) {
      const Values gradients = random_values(static_cast<std::uint64_t>(100 + step), size);
      optimizer.update(step, host[0], gradients, host_slots);
      const DeviceArray uploaded = upload(gradients, padding);
      update_arrays(backend(), optimizer, step, {device[0].span(), uploaded.span(), device_slots});
    }

    for (std::size_t array = 0; array < host.size(); ++array) {
      EXPECT_EQ(bit_differences(host[array], device[array].values()), "")
          << optimizer.configuration() << ", " << size << " floats, array " << array << ", padding " << padding;
    }
  }
};

TEST_F(DeviceOptimizer, GivesTheBitsOfTheHost) {
  const std::vector<std::shared_ptr<const Optimizer>> optimizers = {
      std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1F}),
      std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1F, .momentum = 0.9F}),
      std::make_shared<SGD>(SGDOptions{.learning_rate = 0.1F, .momentum = 0.9F, .nesterov = true}),
      std::make_shared<Adam>(AdamOptions{.learning_rate = 0.01F}),
      std::make_shared<AdamW>(AdamWOptions{.learning_rate = 0.01F, .weight_decay = 0.1F}),
      std::make_shared<RMSprop>(RMSpropOptions{.momentum = 0.9F, .centered = true, .weight_decay = 0.1F}),
      std::make_shared<Adadelta>(AdadeltaOptions{.learning_rate = 1}),
      std::make_shared<Nadam>(),
      std::make_shared<Lion>()};
  for (const auto& optimizer : optimizers) {
    for (const std::size_t size : kOptimizerSizes) {
      for (const std::size_t padding : {0, 1}) expect_bits_of_the_host(*optimizer, size, padding);
    }
  }
}

TEST_F(DeviceOptimizer, ChangesNothingOutsideItsRange) {
  const DeviceArray parameters = upload(Values(100, 7));
  const DeviceArray gradients = upload(Values(100, 1));

  update_arrays(backend(), SGD(SGDOptions{.learning_rate = 1}), 1,
                {parameters.span().subspan(8, 61), gradients.span().subspan(8, 61), {}});

  Values expected(100, 7);
  std::fill_n(expected.begin() + 8, 61, 6.0F);
  EXPECT_EQ(bit_differences(expected, parameters.values()), "");
}

TEST_F(DeviceOptimizer, TakesAnEmptyRange) {
  const DeviceArray parameters = upload(Values(1, 7));

  update_arrays(backend(), SGD(SGDOptions{.learning_rate = 1}), 1, {});

  EXPECT_EQ(parameters.values()[0], 7.0F);
}

TEST_F(DeviceOptimizer, MovesAveragesAsTheHostDoes) {
  constexpr float kMomentum = 0.99F;
  constexpr float kCount = 96;
  for (const std::size_t size : kOptimizerSizes) {
    const Values sums = random_values(1, size);
    Values expected = random_values(2, size);
    const DeviceArray moving = upload(expected);
    for (std::size_t i = 0; i < size; ++i) expected[i] = expected[i] * kMomentum + sums[i] / kCount * (1 - kMomentum);

    kernels().update_moving(upload(sums).data(), upload(Values{kCount}).data(), size, kMomentum, moving.data());

    EXPECT_EQ(bit_differences(expected, moving.values()), "") << size << " floats";
  }
}

TEST_F(DeviceOptimizer, MovesNoAverageWithoutSamples) {
  const Values before = random_values(2, 10);
  const DeviceArray moving = upload(before);

  kernels().update_moving(upload(Values(10)).data(), upload(Values{0}).data(), 10, 0.9F, moving.data());

  EXPECT_EQ(bit_differences(before, moving.values()), "");
}

// More gaps than a launch takes; short ones and a long one.
TEST_F(DeviceOptimizer, ClearsGapsAndNothingElse) {
  constexpr std::size_t kSize = 40'000;
  Values expected(kSize, 3);
  std::vector<compute::DeviceKernels::Gap> gaps;
  for (std::size_t i = 0; i < 300; ++i) gaps.push_back({.begin = 100 * i + i % 7, .end = 100 * i + i % 7 + i % 16});
  gaps.push_back({.begin = 31'000, .end = 39'999});
  for (const auto& gap : gaps) {
    for (std::size_t i = gap.begin; i < gap.end; ++i) expected[i] = 0;
  }
  const DeviceArray arena = upload(Values(kSize, 3));

  kernels().clear(gaps, arena.data());

  EXPECT_EQ(bit_differences(expected, arena.values()), "");
}

}  // namespace
}  // namespace holdfast
