// Gradient clipping on a device, compared with the host.

#include <algorithm>
#include <cmath>
#include <limits>

#include "compute/arithmetic/gradient_clipping.h"
#include "gpu/support/gpu_test.h"
#include "optim/gradient_clipper.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;
using Ranges = std::vector<compute::NormRange>;

// A product that is not a number has another sign and payload on a device.
Values with_one_nan(std::span<const float> values) {
  Values result(values.begin(), values.end());
  std::ranges::replace_if(
      result, [](float value) { return std::isnan(value); }, std::numeric_limits<float>::quiet_NaN());
  return result;
}

class DeviceGradientNorm : public GpuTest {
 protected:
  void expect_bits_of_the_host(const GradientClipping& clipping, const Ranges& arrays, const Values& gradients,
                               const char* what) {
    GradientClipper on_host(clipping, arrays, gradients.size(), host_memory(), nullptr);
    GradientClipper on_device(clipping, arrays, gradients.size(), memory(), &kernels());
    const DeviceArray uploaded = upload(gradients);

    const std::span<const float> expected = on_host.clip(gradients);
    Values found(gradients.size());
    // Runs twice, because the first run must not change the result of the second.
    for (int time = 0; time < 2; ++time) {
      memory().copy_to_host(on_device.clip(uploaded.span()), found);
      EXPECT_EQ(bit_differences(with_one_nan(expected), with_one_nan(found)), "") << what << ", time " << time;
    }
    EXPECT_EQ(bit_differences(gradients, uploaded.values()), "") << what << ": what was given";
  }

  void expect_bits_of_the_host(const Ranges& arrays, const Values& gradients, const char* what) {
    // The limit of 0.5 is below the norm of each longer array, and above that of some short ones.
    expect_bits_of_the_host({.norm = 0.5F}, arrays, gradients, what);
    expect_bits_of_the_host({.global_norm = 0.5F}, arrays, gradients, what);
    expect_bits_of_the_host({.global_norm = 1e6F}, arrays, gradients, what);
    expect_bits_of_the_host({.value = 0.25F}, arrays, gradients, what);
  }
};

// Arrays at multiples of 16 floats, as in a model's arena, with zeros between them.
Ranges arrays_of(const std::vector<std::size_t>& sizes) {
  Ranges arrays;
  std::size_t begin = 0;
  for (const std::size_t size : sizes) {
    arrays.push_back({.begin = begin, .end = begin + size});
    begin = (begin + size + 15) / 16 * 16;
  }
  return arrays;
}

Values gradients_of(const Ranges& arrays) {
  Values gradients((arrays.back().end + 15) / 16 * 16);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(random_values(i, arrays[i].end - arrays[i].begin),
                      gradients.begin() + static_cast<std::ptrdiff_t>(arrays[i].begin));
  }
  return gradients;
}

TEST_F(DeviceGradientNorm, GivesTheBitsOfTheHost) {
  const Ranges arrays = arrays_of({1, 0, 255, 256, 257, 4095, 4096, 4097, 3, 100'003, 2});

  expect_bits_of_the_host(arrays, gradients_of(arrays), "arrays of many sizes");
}

// More chunks than a block has lanes.
TEST_F(DeviceGradientNorm, GivesTheBitsOfTheHostForALongArray) {
  const Ranges arrays = arrays_of({257 * compute::kNormChunk + 1000});

  expect_bits_of_the_host({.norm = 0.5F}, arrays, gradients_of(arrays), "a long array");
}

// More arrays than a launch takes, with empty arrays at both ends of a launch.
TEST_F(DeviceGradientNorm, GivesTheBitsOfTheHostForManyArrays) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < 300; ++i) sizes.push_back(i % 128 == 0 || i % 128 == 127 ? 0 : i % 50 + 1);

  const Ranges arrays = arrays_of(sizes);

  expect_bits_of_the_host({.norm = 0.5F}, arrays, gradients_of(arrays), "many arrays");
}

TEST_F(DeviceGradientNorm, KeepsValuesThatAreNotFinite) {
  const Ranges arrays = arrays_of({10, 20, 30});
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Values gradients = gradients_of(arrays);
    gradients[20] = value;

    expect_bits_of_the_host(arrays, gradients, "an array that is not finite");
  }
}

TEST_F(DeviceGradientNorm, WritesNothingOutsideTheArrays) {
  const Ranges arrays = {{.begin = 3, .end = 7}, {.begin = 10, .end = 5000}};
  const DeviceArray gradients = upload(Values(5010, 1));
  const DeviceArray clipped = upload(Values(5010, 7));
  const DeviceArray workspace = upload(Values(compute::norm_workspace_floats(arrays)));

  kernels().clip_norms(arrays, 1, gradients.data(), clipped.data(), workspace.data());

  const Values found = clipped.values();
  for (const std::size_t i : {0, 1, 2, 7, 8, 9, 5000, 5001, 5009}) EXPECT_EQ(found[i], 7) << i;
  EXPECT_EQ(found[3], 0.5F);
}

}  // namespace
}  // namespace holdfast
