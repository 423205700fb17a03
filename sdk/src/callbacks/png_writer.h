#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

// A picture has at most so many rows, and as many columns.
inline constexpr std::int64_t kMostPngSide = 1 << 16;

// The bytes of a PNG file with these pixels: rows of `width` pixels with 1 (grey), 3 (RGB) or 4 (RGBA) bytes each.
// Throws Error{invalid_argument} for sides that are not 1 to kMostPngSide.
std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                   std::int64_t channels);

}  // namespace holdfast
