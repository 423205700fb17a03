#pragma once

// What MemorySpace::hold() returns if there is no room for a second copy: the arrays themselves. Their digest is
// computed at once, and begin_copy() blocks until they are copied. The arrays must not change before that.

#include <memory>
#include <span>
#include <string>

#include "holdfast/core/memory_space.h"

namespace holdfast {

// `why` says why there is no second copy; HeldArrays::obstacle() returns it.
std::unique_ptr<HeldArrays> hold_in_place(MemorySpace& memory, std::span<const std::span<const float>> arrays,
                                          std::string why);

}  // namespace holdfast
