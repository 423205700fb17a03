#pragma once

// For the innermost functions of the codecs, which lose most of their speed where the compiler leaves a call.
#define HOLDFAST_INLINE inline __attribute__((always_inline))
