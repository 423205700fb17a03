#pragma once

// The arithmetic of the CPU on a pretended device's memory.

#include <memory>

#include "compute/backend.h"
#include "pretended_memory.h"

namespace holdfast {

std::unique_ptr<compute::Backend> make_pretended_backend(PretendedMemory& memory);

}  // namespace holdfast
