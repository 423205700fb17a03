#pragma once

// PNG by libpng: all types of color, 1 to 16 bits, interlaced or not.

#include "data/pictures/picture.h"

namespace holdfast {

// As decode_picture(). Where there are 16 bits, the upper 8 are taken; color becomes gray by the weights of ITU-R
// BT.601, as in JPEG. Alpha is left out unless four channels are asked for. A warning of the library, and any wrong
// checksum, is an error.
Picture decode_png(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options, const std::string& path);

}  // namespace holdfast
