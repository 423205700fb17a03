#include "gpu/support/gpu_test.h"

#include <fmt/format.h>
#include <bit>

#include "holdfast/core/random.h"

namespace holdfast {

DeviceArray::DeviceArray(MemorySpace& memory, std::span<const float> values, std::size_t padding)
    : space_(&memory), size_(values.size()), padding_(padding), memory_(memory.allocate(values.size() + padding)) {
  space_->copy_from_host(values, span());
}

std::vector<float> DeviceArray::values() const {
  std::vector<float> result(size_);
  space_->copy_to_host(span(), result);
  return result;
}

void GpuTest::SetUp() {
  backend_ = backend_under_test(precision());
  if (backend_ == nullptr) GTEST_SKIP() << "this machine has no CUDA device (no /dev/nvidiactl)";
  ASSERT_NE(backend_->device_kernels(), nullptr);
}

std::vector<float> random_values(std::uint64_t seed, std::size_t count) {
  Random random(seed, Purpose::user, 0, 0);
  std::vector<float> values(count);
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

std::string bit_differences(std::span<const float> expected, std::span<const float> actual) {
  if (expected.size() != actual.size()) return "the lengths differ";
  std::size_t count = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(expected[i]) == std::bit_cast<std::uint32_t>(actual[i])) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} floats differ; the first is {}: expected {}, is {}", count, expected.size(), first,
                     expected[first], actual[first]);
}

}  // namespace holdfast
