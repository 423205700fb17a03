#include "callbacks/png_writer.h"

#include <fmt/format.h>
#include <png.h>

#include "holdfast/base/error.h"

namespace holdfast {

std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                   std::int64_t channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  // The bound of a side keeps the number of bytes far from an overflow.
  const bool fits = height > 0 && width > 0 && height <= kMostPngSide && width <= kMostPngSide &&
                    pixels.size() == static_cast<std::size_t>(height * width * channels);
  std::string bytes;
  png_alloc_size_t size = 0;
  // The first call finds the size.
  if (fits && png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr) != 0) {
      bytes.resize(size);
      return bytes;
    }
  }
  // libpng leaves its reason in the image, so it is copied before the image is freed.
  const std::string why = fits ? std::string(image.message) : fmt::format("a side has 1 to {} pixels", kMostPngSide);
  png_image_free(&image);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a picture of {} rows of {} pixels cannot be written as PNG: {}; make it smaller", height,
                          width, why));
}

}  // namespace holdfast
