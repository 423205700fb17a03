// The host's memory space. Its loops are written so that compilers vectorise them without changing the order of an
// addition: the same state gives the same bits with every compiler. A second copy of a state in memory would spare
// nothing here, so hold() keeps the arrays in place. See docs/decisions/devices.md.

#include "holdfast/core/memory_space.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/held_in_place.h"
#include "core/huge_pages.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

class HostMemory final : public MemorySpace {
 public:
  std::string device() const override { return "cpu"; }

  std::shared_ptr<float[]> allocate(std::size_t floats) override {
    std::unique_ptr<float[], FloatsRelease> memory = allocate_floats(floats);
    // Zeros, because padding between arrays must add nothing to a norm or a digest.
    std::fill_n(memory.get(), floats, 0.0F);
    return memory;
  }

  void copy_to_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy_from_host(std::span<const float> from, std::span<float> to) override { copy(from, to); }
  void copy(std::span<const float> from, std::span<float> to) override {
    HOLDFAST_ASSERT(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }

  void gather(std::span<const float> from, std::span<const std::int64_t> rows, std::span<float> to) override {
    const std::size_t row_floats = gathered_row_floats(from, rows, to);
    float* next = to.data();
    for (const std::int64_t row : rows) {
      next = std::copy_n(from.data() + static_cast<std::size_t>(row) * row_floats, row_floats, next);
    }
  }

  void add(std::span<const float> summand, std::span<float> sum) override {
    HOLDFAST_ASSERT(summand.size() == sum.size());
    // The promise that the arrays do not overlap lets the compiler add whole vectors without a check.
    float* const __restrict result = sum.data();
    const float* const __restrict addend = summand.data();
    for (std::size_t i = 0; i < sum.size(); ++i) result[i] += addend[i];
  }

  // In NaN and infinity all bits of the exponent are ones. This form vectorises, where a loop that stops at the first
  // hit would not, and a maximum of integers takes three times as long without SSE4.
  bool is_finite(std::span<const float> array) override {
    constexpr std::uint32_t kExponent = 0x7F80'0000U;
    std::uint32_t found = 0;
    for (const float& element : array) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &element, sizeof bits);
      found |= static_cast<std::uint32_t>((bits & kExponent) == kExponent);
    }
    return found == 0;
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

  // Samples are already where the passes read them, so there is nothing to send ahead.
  std::unique_ptr<RowFeed> feed(std::span<const float>, std::size_t) override { return nullptr; }
  // The host has no queue: every call is done when it returns.
  void wait() override {}
  void set_time_limit(std::chrono::milliseconds) override {}
  void pin(std::span<std::byte>) override {}
  void unpin(std::span<std::byte>) override {}
};

}  // namespace

std::size_t MemorySpace::gathered_row_floats(std::span<const float> from, std::span<const std::int64_t> rows,
                                             std::span<const float> to) {
  // Both back ends call this, so they refuse the same mistakes.
  if (rows.empty()) {
    HOLDFAST_ASSERT(to.empty());
    return 0;
  }
  HOLDFAST_ASSERT(to.size() % rows.size() == 0);
  const std::size_t row_floats = to.size() / rows.size();
  if (row_floats == 0) return 0;
  const auto from_rows = static_cast<std::int64_t>(from.size() / row_floats);
  for (const std::int64_t row : rows) HOLDFAST_ASSERT(row >= 0 && row < from_rows);
  return row_floats;
}

MemorySpace& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace holdfast
