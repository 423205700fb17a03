#pragma once

// Whether this code is compiled for the address or the thread sanitizer, which have signal handlers of their own and
// need address space that no limit may take. g++ tells by macros, clang by __has_feature.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_SANITIZED 1
#endif
#endif

namespace holdfast {

#ifdef HOLDFAST_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace holdfast
