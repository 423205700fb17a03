#pragma once

#include <cstdint>

namespace holdfast::cli {

// HDF5's parser runs in a sandboxed process with a limit on memory, because a crafted file could
// ask for any amount.
// The most memory that a command uses for another program's file, unless --max-memory gives another limit.
inline constexpr std::uint64_t kMaxFileMemoryBytes = std::uint64_t{4} << 30;

}  // namespace holdfast::cli
