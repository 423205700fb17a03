#pragma once

// What MemorySpace::hold() gives where there is no room for a second copy: the arrays themselves. Their digest is taken
// at once, and begin_copy() copies.

#include <memory>
#include <span>
#include <string>

#include "holdfast/core/memory_space.h"

namespace holdfast {

// `why` there is no room.
std::unique_ptr<HeldArrays> hold_in_place(MemorySpace& memory, std::span<const std::span<const float>> arrays,
                                          std::string why);

}  // namespace holdfast
