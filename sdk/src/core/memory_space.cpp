#include "holdfast/core/memory_space.h"

#include <algorithm>
#include <new>

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
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += summand[i];
  }

  Digest digest_of(std::span<const std::span<const float>> arrays) override {
    DigestBuilder builder;
    for (const std::span<const float> array : arrays) builder.update(std::as_bytes(array));
    return builder.finish();
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
