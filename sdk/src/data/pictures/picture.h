#pragma once

// A decoded picture, and the entry to both decoders.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace holdfast {

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 0;                  // 1: gray, 3: RGB, 4: RGBA
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

// How pictures are decoded; both fields come from PictureOptions.
struct PictureDecodeOptions {
  int channels = 3;
  std::int64_t max_pixels = 0;
};

// Decodes a JPEG or PNG file, whose content decides which it is. `path` is for messages. Throws Error{invalid_file} for
// what is damaged, neither of both, or larger than max_pixels, and Error{unsupported} for JPEG of other colors than
// gray and RGB.
Picture decode_picture(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options,
                       const std::string& path);

// Takes the memory for the pixels. Throws Error{invalid_file} if there are more than max_pixels.
Picture sized_picture(std::uint64_t height, std::uint64_t width, const PictureDecodeOptions& options,
                      const std::string& path);

}  // namespace holdfast
