#pragma once

// The arithmetic of the CPU on a pretended device's memory, whatever the precision, which the description names.

#include <memory>

#include "compute/backend.h"
#include "pretended_memory.h"

namespace holdfast {

std::unique_ptr<compute::Backend> make_pretended_backend(PretendedMemory& memory, Precision precision);

}  // namespace holdfast
