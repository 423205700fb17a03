#pragma once

// The tables, each of which its own source defines.

#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {

extern const VectorKernels kBaselineKernels;
#ifdef __x86_64__
extern const VectorKernels kAvx2Kernels;
extern const VectorKernels kAvx512Kernels;
#endif

}  // namespace holdfast::compute
