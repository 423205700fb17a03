#ifdef __x86_64__

// CMake compiles this source alone with the options of AVX-512, which vector_kernels.cpp asks the machine for.
#define HOLDFAST_INSTRUCTION_SET
#include "compute/cpu/kernels/all_loops.h"
#include "compute/cpu/kernels/tables.h"

namespace holdfast::compute {

constexpr VectorKernels kAvx512Kernels = kernels_of_this_source(InstructionSet::avx512);

}  // namespace holdfast::compute

#endif
