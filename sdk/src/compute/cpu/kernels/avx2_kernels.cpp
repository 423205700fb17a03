#ifdef __x86_64__

// CMake compiles this source alone with -mavx2. Anything else that stood here could end a program on an older machine.
#define HOLDFAST_INSTRUCTION_SET
#include "compute/cpu/kernels/all_loops.h"
#include "compute/cpu/kernels/tables.h"

namespace holdfast::compute {

constexpr VectorKernels kAvx2Kernels = kernels_of_this_source(InstructionSet::avx2);

}  // namespace holdfast::compute

#endif
