#pragma once

#include <cstdint>

namespace holdfast::cli {

// What commands that look at a stranger's file hold of it at once, unless --max-memory says otherwise.
inline constexpr std::uint64_t kMaxFileMemoryBytes = std::uint64_t{4} << 30;

}  // namespace holdfast::cli
