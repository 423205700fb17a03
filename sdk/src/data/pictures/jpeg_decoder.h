#pragma once

// JPEG by libjpeg-turbo, with the integer transform whose bits do not depend on the processor.

#include "data/pictures/picture.h"

namespace holdfast {

// As decode_picture(). A warning of the library about damaged data is an error.
Picture decode_jpeg(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options, const std::string& path);

}  // namespace holdfast
