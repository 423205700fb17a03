#pragma once

// See vector_kernels.h. What is written here is read again long after, when the caches have other things. Stores past
// the caches spare the read of each line before it is written: a third of what an addition in memory moves.

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstdint>

#include "compute/cpu/kernels/loop_hints.h"

namespace holdfast::compute {
namespace {

typedef float StreamedFloats __attribute__((vector_size(kHostVectorFloats * sizeof(float))));
typedef std::int32_t StreamedWords __attribute__((vector_size(kHostVectorFloats * sizeof(float))));

[[gnu::always_inline]] inline void store_past_cache(StreamedFloats values, float* to) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, values);
#elif defined(__AVX2__)
  _mm256_stream_ps(to, values);
#elif defined(__SSE2__)
  _mm_stream_ps(to, values);
#else
  __builtin_memcpy(to, &values, sizeof(values));
#endif
}

// An exponent of ones is infinity or NaN.
constexpr std::int32_t kExponentOfOnes = 0x7F80'0000;

bool add_past_cache(const float* a, const float* b, std::int64_t count, float* to) {
  StreamedWords found = {};
  std::int64_t i = 0;
  if (reinterpret_cast<std::uintptr_t>(to) % (kLineFloats * sizeof(float)) == 0) {
    for (; i + kHostVectorFloats <= count; i += kHostVectorFloats) {
      StreamedFloats sum, summand;
      __builtin_memcpy(&sum, a + i, sizeof(sum));
      __builtin_memcpy(&summand, b + i, sizeof(summand));
      sum += summand;
      store_past_cache(sum, to + i);
      StreamedWords words;
      __builtin_memcpy(&words, &sum, sizeof(words));
      found |= (words & kExponentOfOnes) == kExponentOfOnes;
    }
#ifdef __SSE2__
    // Other threads read the sums after this one has said that it is done.
    _mm_sfence();
#endif
  }
  std::int32_t any = 0;
  for (int lane = 0; lane < kHostVectorFloats; ++lane) any |= found[lane];
  for (; i < count; ++i) {
    to[i] = a[i] + b[i];
    std::int32_t word;
    __builtin_memcpy(&word, to + i, sizeof(word));
    any |= (word & kExponentOfOnes) == kExponentOfOnes ? 1 : 0;
  }
  return any == 0;
}

}  // namespace
}  // namespace holdfast::compute
