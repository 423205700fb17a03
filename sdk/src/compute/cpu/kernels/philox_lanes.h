#pragma once

// Philox for as many counters at once as a vector has 64-bit places. See vector_kernels.h.
//
// A word of a counter is the lower half of such a place. A product of two words fills the place, so its upper half is a
// shift away and its lower half needs nothing at all. What is left in upper halves is harmless: products read the lower
// ones alone. Compilers do not find this form by themselves, so types and products are written out.

#include <cstdint>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "core/philox.h"

namespace holdfast::compute {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::int64_t kVectorBytes = 32;
#else
constexpr std::int64_t kVectorBytes = 16;
#endif

typedef std::uint64_t CounterLanes __attribute__((vector_size(kVectorBytes)));
typedef std::uint32_t DrawLanes __attribute__((vector_size(kVectorBytes)));
typedef std::int32_t SignedLanes __attribute__((vector_size(kVectorBytes)));
typedef float FloatLanes __attribute__((vector_size(kVectorBytes)));

constexpr std::int64_t kCounterLanes = kVectorBytes / 8;
constexpr std::int64_t kDrawLanes = kVectorBytes / 4;

// The whole products of the lower halves.
[[gnu::always_inline]] inline CounterLanes product_of_words(CounterLanes a, CounterLanes b) {
#if defined(__AVX512F__)
  // The form without a mask reads what it calls undefined, and g++ 12 warns of it.
  return reinterpret_cast<CounterLanes>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<CounterLanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<CounterLanes>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
#endif
}

// Moves upper halves to the lower ones. With AVX-512, shifts and products share one of two units for vectors, and
// permutations have the other.
[[gnu::always_inline]] inline CounterLanes upper_words(CounterLanes lanes) {
#if defined(__AVX512F__)
  return reinterpret_cast<CounterLanes>(
      _mm512_maskz_shuffle_epi32(0xFFFF, reinterpret_cast<__m512i>(lanes), static_cast<_MM_PERM_ENUM>(0xF5)));
#else
  return lanes >> 32;
#endif
}

// The lower halves of `low` with those of `high` as upper ones.
[[gnu::always_inline]] inline CounterLanes joined_words(CounterLanes low, CounterLanes high) {
#if defined(__AVX512F__)
  return reinterpret_cast<CounterLanes>(_mm512_mask_shuffle_epi32(
      reinterpret_cast<__m512i>(low), 0xAAAA, reinterpret_cast<__m512i>(high), static_cast<_MM_PERM_ENUM>(0xA0)));
#else
  return (low & 0xFFFFFFFF) | high << 32;
#endif
}

// The keys of all rounds, which a loop over counters reads again and again.
struct PhiloxKeyLanes {
  CounterLanes word[kPhiloxRounds][2];
};

[[gnu::always_inline]] inline PhiloxKeyLanes philox_key_lanes(PhiloxKey key) {
  PhiloxKeyLanes lanes;
  for (std::uint32_t round = 0; round < kPhiloxRounds; ++round) {
    const PhiloxKey of_round = philox_round_key(key, round);
    lanes.word[round][0] = CounterLanes{} + of_round.word[0];
    lanes.word[round][1] = CounterLanes{} + of_round.word[1];
  }
  return lanes;
}

// The draws of 2 * kDrawLanes elements, in their order.
struct PhiloxDraws {
  DrawLanes first;
  DrawLanes second;
};

// Where the counters lie: those whose draws end up in the first vector have the even places.
[[gnu::always_inline]] inline CounterLanes counter_places() {
  CounterLanes places;
  for (std::int64_t i = 0; i < kCounterLanes; ++i) {
    places[i] = static_cast<std::uint64_t>(i / 2 + i % 2 * (kCounterLanes / 2));
  }
  return places;
}

// Words 0 and 1 of each counter in one place, and words 2 and 3 in another. Even places make the first vector of draws.
[[gnu::always_inline]] inline PhiloxDraws in_order(const CounterLanes (&word)[4]) {
  const CounterLanes low = joined_words(word[0], word[1]);
  const CounterLanes high = joined_words(word[2], word[3]);
#if defined(__AVX512F__)
  const auto first = __builtin_shufflevector(low, high, 0, 8, 2, 10, 4, 12, 6, 14);
  const auto second = __builtin_shufflevector(low, high, 1, 9, 3, 11, 5, 13, 7, 15);
#elif defined(__AVX2__)
  const auto first = __builtin_shufflevector(low, high, 0, 4, 2, 6);
  const auto second = __builtin_shufflevector(low, high, 1, 5, 3, 7);
#else
  const auto first = __builtin_shufflevector(low, high, 0, 2);
  const auto second = __builtin_shufflevector(low, high, 1, 3);
#endif
  return {reinterpret_cast<DrawLanes>(first), reinterpret_cast<DrawLanes>(second)};
}

// The draws of kBlocks times kCounterLanes counters from `counter` on, as philox_draws() gives them. Each round waits
// for the one before, so the rounds of several blocks alternate. Where all counters are below 2^32 (kAreWords), parts
// of the first two rounds are the same for all of them, and compilers take these out of a loop.
template <bool kAreWords, int kBlocks>
[[gnu::always_inline]] inline void philox_draw_lanes(const PhiloxSequence& sequence, const PhiloxKeyLanes& keys,
                                                     std::uint64_t counter, PhiloxDraws (&draws)[kBlocks]) {
  const CounterLanes multiplier_0 = CounterLanes{} + kPhiloxMultiplier0;
  const CounterLanes multiplier_1 = CounterLanes{} + kPhiloxMultiplier1;
  CounterLanes word[kBlocks][4];
#pragma GCC unroll 4
  for (int block = 0; block < kBlocks; ++block) {
    word[block][0] = counter_places() + (counter + static_cast<std::uint64_t>(block * kCounterLanes));
    word[block][1] = kAreWords ? CounterLanes{} : word[block][0] >> 32;
    word[block][2] = CounterLanes{} + sequence.high[0];
    word[block][3] = CounterLanes{} + sequence.high[1];
  }
#pragma GCC unroll 10
  for (std::uint32_t round = 0; round < kPhiloxRounds; ++round) {
#pragma GCC unroll 4
    for (CounterLanes(&of)[4] : word) {
      const CounterLanes product_0 = product_of_words(multiplier_0, of[0]);
      const CounterLanes product_1 = product_of_words(multiplier_1, of[2]);
      of[0] = upper_words(product_1) ^ of[1] ^ keys.word[round][0];
      of[1] = product_1;
      of[2] = upper_words(product_0) ^ of[3] ^ keys.word[round][1];
      of[3] = product_0;
    }
  }
#pragma GCC unroll 4
  for (int block = 0; block < kBlocks; ++block) draws[block] = in_order(word[block]);
}

}  // namespace
}  // namespace holdfast::compute
