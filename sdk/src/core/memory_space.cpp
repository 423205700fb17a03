#include "holdfast/core/memory_space.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "core/held_in_place.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::align_val_t kAlignment{64};

class HostMemory final : public MemorySpace {
 public:
  std::string device() const override { return "cpu"; }

  std::shared_ptr<float[]> allocate(std::size_t floats) override {
    auto* const memory =
        static_cast<float*>(::operator new(std::max<std::size_t>(floats, 1) * sizeof(float), kAlignment));
    std::fill_n(memory, floats, 0.0F);
    return {memory, [](float* released) { ::operator delete(released, kAlignment); }};
  }

  void copy_to_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy_from_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy(std::span<const float> from, std::span<float> to) override {
    HOLDFAST_ASSERT(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }

  void add(std::span<const float> summand, std::span<float> sum) override {
    HOLDFAST_ASSERT(summand.size() == sum.size());
    float* const __restrict result = sum.data();
    const float* const __restrict addend = summand.data();
    for (std::size_t i = 0; i < sum.size(); ++i) result[i] += addend[i];
  }

  // The exponent of NaN and infinity is all ones. A maximum over integers vectorises, and does not stop early.
  bool is_finite(std::span<const float> array) override {
    std::uint32_t largest = 0;
    for (const float& element : array) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &element, sizeof bits);
      largest = std::max(largest, bits & 0x7FFF'FFFFU);
    }
    return largest < 0x7F80'0000U;
  }

  void fill_zero(std::span<float> array) override { std::fill(array.begin(), array.end(), 0.0F); }

  Digest digest_of(std::span<const std::span<const float>> arrays) override {
    DigestBuilder builder;
    for (const std::span<const float> array : arrays) builder.update(std::as_bytes(array));
    return builder.finish();
  }

  std::unique_ptr<HeldArrays> hold(std::span<const std::span<const float>> arrays) override {
    return hold_in_place(*this, arrays, "they lie in the host's memory");
  }

  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) override {}
};

}  // namespace

MemorySpace& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace holdfast
