#pragma once

#include <cstdint>

namespace holdfast::cli {

// The most memory that a command uses for another program's file, unless --max-memory gives another limit.
inline constexpr std::uint64_t kMaxFileMemoryBytes = std::uint64_t{4} << 30;

}  // namespace holdfast::cli
