#pragma once

// For the innermost functions of the codecs, which lose most of their speed if the compiler does not inline
// them.
#define HOLDFAST_INLINE inline __attribute__((always_inline))
