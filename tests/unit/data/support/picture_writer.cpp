#include "unit/data/support/picture_writer.h"

#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

// After <cstdio>: the header uses FILE and size_t, and includes neither.
#include <jpeglib.h>

namespace holdfast {
namespace {

int png_color_type(int channels) {
  if (channels == 1) return PNG_COLOR_TYPE_GRAY;
  if (channels == 2) return PNG_COLOR_TYPE_GRAY_ALPHA;
  return channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGB_ALPHA;
}

void append(png_structp png, png_bytep bytes, std::size_t count) {
  auto& file = *static_cast<std::vector<std::uint8_t>*>(png_get_io_ptr(png));
  file.insert(file.end(), bytes, bytes + count);
}

}  // namespace

WrittenPicture gradient(int height, int width, int channels) {
  WrittenPicture picture{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      for (int channel = 0; channel < channels; ++channel) {
        picture.pixels.push_back(
            static_cast<std::uint8_t>(20 + 60 * channel + 40 * row / height + 50 * column / width));
      }
    }
  }
  return picture;
}

std::vector<std::uint8_t> jpeg_bytes(const WrittenPicture& picture, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : picture.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  if (kind.is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> pixels = picture.pixels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + info.next_scanline * static_cast<std::size_t>(picture.width * picture.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::vector<std::uint8_t> bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

std::vector<std::uint8_t> png_bytes(const WrittenPicture& picture, const PngKind& kind) {
  std::vector<std::uint8_t> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, &append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height),
               kind.is_16_bits ? 16 : 8, png_color_type(picture.channels),
               kind.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (kind.has_profile_that_libpng_warns_of) {
    png_write_chunk(png, reinterpret_cast<png_const_bytep>("iCCP"), reinterpret_cast<png_const_bytep>("bad\0\0xyz"), 8);
  }
  std::vector<std::uint8_t> pixels;
  for (const std::uint8_t pixel : picture.pixels) {
    pixels.push_back(pixel);
    if (kind.is_16_bits) pixels.push_back(0x77);
  }
  std::vector<png_bytep> rows;
  const std::size_t row_bytes = pixels.size() / static_cast<std::size_t>(picture.height);
  for (int row = 0; row < picture.height; ++row) {
    rows.push_back(pixels.data() + static_cast<std::size_t>(row) * row_bytes);
  }
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace holdfast
