#define HOLDFAST_INSTRUCTION_SET
#include "compute/cpu/kernels/all_loops.h"
#include "compute/cpu/kernels/tables.h"

namespace holdfast::compute {

constexpr VectorKernels kBaselineKernels = kernels_of_this_source(InstructionSet::baseline);

}  // namespace holdfast::compute
