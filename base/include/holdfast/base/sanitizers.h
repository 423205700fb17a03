#pragma once

// Whether this code is compiled for the address or the thread sanitizer. Both install signal handlers
// of their own and reserve terabytes of address space, so code that handles crashes, or limits the
// address space, asks here first:
//
//   if constexpr (!kIsSanitized) limit_address_space();
//
// g++ defines macros for the sanitizers; clang answers __has_feature. The other sanitizers change
// neither, and do not count.
//
// A preprocessor condition may ask for HOLDFAST_SANITIZED, or for HOLDFAST_THREAD_SANITIZED. The latter is for code
// that tells the thread sanitizer of an order which it cannot see, such as that of OpenMP's threads.
#if defined(__SANITIZE_ADDRESS__)
#define HOLDFAST_SANITIZED 1  // the address or the thread sanitizer is active
#elif defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED 1         // the address or the thread sanitizer is active
#define HOLDFAST_THREAD_SANITIZED 1  // tells code that the thread sanitizer must be told of what it cannot see
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOLDFAST_SANITIZED 1  // the address or the thread sanitizer is active
#elif __has_feature(thread_sanitizer)
#define HOLDFAST_SANITIZED 1         // the address or the thread sanitizer is active
#define HOLDFAST_THREAD_SANITIZED 1  // the thread sanitizer is active
#endif
#endif

namespace holdfast {

// Not inline: a library and a program may be compiled differently, and each has its own.
#ifdef HOLDFAST_SANITIZED
constexpr bool kIsSanitized = true;  // whether the address or the thread sanitizer is active
#else
constexpr bool kIsSanitized = false;  // whether the address or the thread sanitizer is active
#endif

}  // namespace holdfast
