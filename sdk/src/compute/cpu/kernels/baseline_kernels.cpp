// The same loops as in the other two sources, compiled without options for a machine. Where neither of the other sets
// is there, these run, with the same bits.
#define HOLDFAST_INSTRUCTION_SET
#include "compute/cpu/kernels/all_loops.h"
#include "compute/cpu/kernels/tables.h"

namespace holdfast::compute {

constexpr VectorKernels kBaselineKernels = kernels_of_this_source(InstructionSet::baseline);

}  // namespace holdfast::compute
