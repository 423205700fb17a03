#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast::format {

// Returns the elements of a row-major array of `shape`, row-major in the order of `axes`: axis k of the result is
// axis axes[k] of the array. Elements have 1, 2, 4 or 8 bytes.
std::vector<std::byte> transpose(std::span<const std::byte> bytes, std::size_t element_bytes,
                                 std::span<const std::uint64_t> shape, std::span<const std::size_t> axes);

}  // namespace holdfast::format
