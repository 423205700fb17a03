#include "data/pictures/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/pictures/jpeg_decoder.h"
#include "data/pictures/png_decoder.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

bool begins_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> mark) {
  return bytes.size() >= mark.size() && std::equal(mark.begin(), mark.end(), bytes.begin());
}

}  // namespace

Picture decode_picture(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options,
                       const std::string& path) {
  // The SOI marker and the first byte of the next marker (JPEG), and the signature of
  // PNG. Names of files are not believed.
  static constexpr std::array<std::uint8_t, 3> kJpeg = {0xFF, 0xD8, 0xFF};
  static constexpr std::array<std::uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (begins_with(bytes, kJpeg)) return decode_jpeg(bytes, options, path);
  if (begins_with(bytes, kPng)) return decode_png(bytes, options, path);
  throw Error(ErrorCode::invalid_file,
              fmt::format("{} is neither a JPEG nor a PNG file ({} bytes); convert it, or remove it from the folder",
                          quoted_path(path), bytes.size()));
}

Picture sized_picture(std::uint64_t height, std::uint64_t width, const PictureDecodeOptions& options,
                      const std::string& path) {
  // Both decoders read sides of 32 bits, so the product does not overflow.
  if (height == 0 || width == 0 || height * width > static_cast<std::uint64_t>(options.max_pixels)) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("the picture {} has {} x {} pixels, where 1 to {} are allowed; raise max_pixels to read it",
                            quoted_path(path), height, width, options.max_pixels));
  }
  Picture picture{.height = static_cast<std::int64_t>(height),
                  .width = static_cast<std::int64_t>(width),
                  .channels = options.channels,
                  .pixels = {}};
  // At most 4 times max_pixels, which was checked. So a head that promises more than
  // the file has takes no more than that.
  picture.pixels.resize(height * width * static_cast<std::uint64_t>(options.channels));
  return picture;
}

}  // namespace holdfast
