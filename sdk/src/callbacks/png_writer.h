#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace holdfast {

// The bytes of a PNG file with these pixels: rows of `width` pixels with 1 (grey), 3 (RGB) or 4 (RGBA) bytes each.
// Throws Error{invalid_argument} for sizes that PNG does not have.
std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                   std::int64_t channels);

}  // namespace holdfast
