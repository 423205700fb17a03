#pragma once

// Pictures for tests: files of JPEG and PNG, made of pixels.

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

struct WrittenPicture {
  int height = 0;
  int width = 0;
  int channels = 0;                  // 1: gray, 2: gray and alpha, 3: RGB, 4: RGBA; in JPEG, CMYK
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

struct JpegKind {
  int quality = 95;
  bool is_progressive = false;
};

struct PngKind {
  bool is_interlaced = false;
  bool is_16_bits = false;  // the lower byte of each number is 0x77
  bool has_profile_that_libpng_warns_of = false;
};

// A gradient, so that JPEG loses little of it.
WrittenPicture gradient(int height, int width, int channels);

// The bytes of a file.
std::vector<std::uint8_t> jpeg_bytes(const WrittenPicture& picture, const JpegKind& kind = {});
std::vector<std::uint8_t> png_bytes(const WrittenPicture& picture, const PngKind& kind = {});

// Makes missing folders.
void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes);

}  // namespace holdfast
