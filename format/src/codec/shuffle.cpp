// Loading and saving spend much of their time here, so elements are shuffled in vectors of 16 bytes: each
// round splits or joins pairs of bytes, and log2(element size) rounds do the whole shuffle. Results of
// loading are stored past the caches. See docs/decisions/compression.md.

#include "codec/shuffle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "codec/always_inline.h"
#include "holdfast/base/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace holdfast::format {
namespace {

typedef std::uint8_t Vector __attribute__((vector_size(16)));
constexpr std::size_t kVector = sizeof(Vector);

// even = bytes 0, 2, 4 ... of a, then those of b; odd = bytes 1, 3, 5 ... of a, then those of b.
template <std::size_t... kIndex>
HOLDFAST_INLINE void split_pairs(const Vector& a, const Vector& b, Vector& even, Vector& odd,
                                 std::index_sequence<kIndex...>) {
  even = __builtin_shufflevector(a, b, static_cast<int>(2 * kIndex)...);
  odd = __builtin_shufflevector(a, b, static_cast<int>(2 * kIndex + 1)...);
}

// The reverse: low = a[0], b[0], a[1], b[1] ..., and high continues from there.
template <std::size_t... kIndex>
HOLDFAST_INLINE void join_pairs(const Vector& a, const Vector& b, Vector& low, Vector& high,
                                std::index_sequence<kIndex...>) {
  low = __builtin_shufflevector(a, b, static_cast<int>(kIndex / 2 + kIndex % 2 * kVector)...);
  high = __builtin_shufflevector(a, b, static_cast<int>((kIndex + kVector) / 2 + kIndex % 2 * kVector)...);
}

// Turns kWidth vectors of elements into one vector for each plane. Each round halves the distance between bytes
// of one plane.
template <std::size_t kWidth>
HOLDFAST_INLINE void split_planes(std::array<Vector, kWidth>& vectors) {
  for (std::size_t round = 1; round < kWidth; round *= 2) {
    std::array<Vector, kWidth> next;
    for (std::size_t i = 0; i < kWidth / 2; ++i) {
      split_pairs(vectors[2 * i], vectors[2 * i + 1], next[i], next[kWidth / 2 + i],
                  std::make_index_sequence<kVector>());
    }
    vectors = next;
  }
}

template <std::size_t kWidth>
HOLDFAST_INLINE void join_planes(std::array<Vector, kWidth>& vectors) {
  for (std::size_t round = 1; round < kWidth; round *= 2) {
    std::array<Vector, kWidth> next;
    for (std::size_t i = 0; i < kWidth / 2; ++i) {
      join_pairs(vectors[i], vectors[kWidth / 2 + i], next[2 * i], next[2 * i + 1],
                 std::make_index_sequence<kVector>());
    }
    vectors = next;
  }
}

// Returns how many elements it shuffled: only whole vectors.
// The rest, less than a vector, is left to the caller.
template <std::size_t kWidth>
std::size_t shuffle_vectors(const std::byte* in, std::size_t count, std::size_t plane, std::byte* out) {
  std::size_t i = 0;
  for (; i + kVector <= count; i += kVector) {
    std::array<Vector, kWidth> vectors;
    for (std::size_t v = 0; v < kWidth; ++v) std::memcpy(&vectors[v], in + i * kWidth + v * kVector, kVector);
    split_planes(vectors);
    for (std::size_t b = 0; b < kWidth; ++b) std::memcpy(out + b * plane + i, &vectors[b], kVector);
  }
  return i;
}

// For results that are read soon.
struct Store {
  void operator()(const Vector& vector, std::byte* out) const { std::memcpy(out, &vector, sizeof(vector)); }
};

// Stores to aligned addresses past the caches, which keep other data.
struct StorePastCaches {
  void operator()(const Vector& vector, std::byte* out) const {
#if defined(__SSE2__)
    __m128i value;
    std::memcpy(&value, &vector, sizeof(value));
    _mm_stream_si128(reinterpret_cast<__m128i*>(out), value);
#else
    std::memcpy(out, &vector, sizeof(vector));
#endif
  }
};

// Without this, stores past the caches may become visible after the stores that follow them.
void finish_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <std::size_t kWidth>
using Planes = std::array<const std::byte*, kWidth>;

// Unshuffles the elements [i, count) as far as they fill whole vectors. Returns the first that is left.
template <std::size_t kWidth, typename StoreVector>
std::size_t unshuffle_vectors(const Planes<kWidth>& planes, std::size_t i, std::size_t count, std::byte* out,
                              const StoreVector& store) {
  // A local copy: the compiler knows that no store to `out` changes it.
  const Planes<kWidth> from = planes;
  for (; i + kVector <= count; i += kVector) {
    std::array<Vector, kWidth> vectors;
    for (std::size_t b = 0; b < kWidth; ++b) std::memcpy(&vectors[b], from[b] + i, kVector);
    join_planes(vectors);
    for (std::size_t v = 0; v < kWidth; ++v) store(vectors[v], out + i * kWidth + v * kVector);
  }
  return i;
}

template <std::size_t kWidth>
void unshuffle_plainly(const Planes<kWidth>& planes, std::size_t i, std::size_t end, std::byte* out) {
  for (; i < end; ++i) {
    for (std::size_t b = 0; b < kWidth; ++b) out[i * kWidth + b] = planes[b][i];
  }
}

template <std::size_t kWidth>
void shuffle_elements(std::span<const std::byte> in, std::size_t plane, std::byte* out, ShuffleMethod method) {
  const std::size_t count = in.size() / kWidth;
  std::size_t i = method != ShuffleMethod::plain ? shuffle_vectors<kWidth>(in.data(), count, plane, out) : 0;
  for (; i < count; ++i) {
    for (std::size_t b = 0; b < kWidth; ++b) out[b * plane + i] = in[i * kWidth + b];
  }
  for (std::size_t b = 0; b < kWidth; ++b) std::fill(out + b * plane + count, out + (b + 1) * plane, std::byte{0});
}

template <std::size_t kWidth>
void unshuffle_elements(std::span<const std::byte* const> all, std::span<std::byte> out, ShuffleMethod method) {
  Planes<kWidth> planes;
  std::copy(all.begin(), all.end(), planes.begin());
  const std::size_t count = out.size() / kWidth;
  // Stores past the caches need aligned addresses. Elements up to the first one are moved one by one.
  const std::size_t misaligned = -reinterpret_cast<std::uintptr_t>(out.data()) % kVector;
  std::size_t i = 0;
  if (method == ShuffleMethod::vectors_past_caches && misaligned % kWidth == 0) {
    i = std::min(misaligned / kWidth, count);
    unshuffle_plainly(planes, 0, i, out.data());
    i = unshuffle_vectors(planes, i, count, out.data(), StorePastCaches());
    finish_stores();
  } else if (method != ShuffleMethod::plain) {
    i = unshuffle_vectors(planes, i, count, out.data(), Store());
  }
  unshuffle_plainly(planes, i, count, out.data());
}

template <std::size_t kWidth>
using Width = std::integral_constant<std::size_t, kWidth>;

// Calls `action` with the width as a constant, so that loops over the bytes of an element are unrolled.
template <typename Action>
void with_width(std::size_t element_bytes, const Action& action) {
  switch (element_bytes) {
    case 1:
      return action(Width<1>());
    case 2:
      return action(Width<2>());
    case 4:
      return action(Width<4>());
    case 8:
      return action(Width<8>());
    default:
      HOLDFAST_ASSERT(false && "an element has 1, 2, 4 or 8 bytes");
  }
}

}  // namespace

void shuffle(std::span<const std::byte> in, std::size_t element_bytes, std::size_t plane_elements, std::byte* out,
             ShuffleMethod method) {
  HOLDFAST_ASSERT(in.size() % element_bytes == 0 && in.size() / element_bytes <= plane_elements);
  with_width(element_bytes, [&](auto width) { shuffle_elements<width>(in, plane_elements, out, method); });
}

void unshuffle(std::span<const std::byte* const> planes, std::span<std::byte> out, ShuffleMethod method) {
  HOLDFAST_ASSERT(out.size() % planes.size() == 0);
  with_width(planes.size(), [&](auto width) { unshuffle_elements<width>(planes, out, method); });
}

void unshuffle(const std::byte* in, std::size_t element_bytes, std::size_t plane_elements, std::span<std::byte> out,
               ShuffleMethod method) {
  HOLDFAST_ASSERT(element_bytes <= 8 && out.size() / element_bytes <= plane_elements);
  // Planes that follow each other are a special case of planes at any addresses.
  std::array<const std::byte*, 8> planes{};
  for (std::size_t b = 0; b < element_bytes; ++b) planes[b] = in + b * plane_elements;
  unshuffle(std::span(planes).first(element_bytes), out, method);
}

}  // namespace holdfast::format
