// libpng reports failures by a function that must not return, so it jumps (longjmp); see jpeg_decoder.cpp. Chunks that
// do not change pixels are passed over, since libpng warns of color profiles and texts that harm nobody. Their
// checksums still count. docs/decisions/pictures.md

#include "data/pictures/png_decoder.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

// A row has one more than this at most, in pixels; libpng takes two rows besides the picture.
constexpr png_uint_32 kMostPngSide = 1U << 20;
constexpr png_alloc_size_t kMostChunkBytes = 8U << 20;

class PngReader {
 public:
  PngReader(std::span<const std::uint8_t> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  // Takes null pointers, so it is right after a failure at any point.
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Picture read(const PictureDecodeOptions& options) {
    require(read_header());
    // Color is read as such and becomes gray afterwards: libpng would do so by gamma.
    PictureDecodeOptions stored = options;
    const bool to_gray = options.channels == 1 && (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0;
    // Three bytes a pixel are taken for a picture of one, so max_pixels counts pixels and not bytes.
    if (to_gray) stored.channels = 3;
    require(choose_pixels(stored.channels));
    Picture picture = sized_picture(png_get_image_height(png_, info_), png_get_image_width(png_, info_), stored, path_);
    const auto row_bytes = static_cast<std::size_t>(picture.width * picture.channels);
    // The library writes so many bytes to a row, whatever was asked for.
    if (png_get_rowbytes(png_, info_) != row_bytes) {
      throw Error(ErrorCode::unsupported, fmt::format("the PNG picture {} has pixels of a type that is not known: {} "
                                                      "bytes a row, where {} were expected; convert it",
                                                      quoted_path(path_), png_get_rowbytes(png_, info_), row_bytes));
    }
    // A member and not a local of read_rows(), where a jump would pass over its destructor. Interlaced files write to
    // all rows several times, so the library needs all of them at once.
    rows_.resize(static_cast<std::size_t>(picture.height));
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row] = picture.pixels.data() + row * row_bytes;
    require(read_rows());
    if (to_gray) turn_gray(picture);
    return picture;
  }

 private:
  static PngReader& of(png_structp png) { return *static_cast<PngReader*>(png_get_error_ptr(png)); }

  // Also called for warnings.
  static void fail(png_structp png, png_const_charp message) {
    PngReader& reader = of(png);
    std::snprintf(reader.message_.data(), reader.message_.size(), "%s", message);
    std::longjmp(reader.place_, 1);
  }

  // libpng asks for bytes by this function. It must deliver all of them or not return.
  static void take(png_structp png, png_bytep into, std::size_t count) {
    PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > reader.bytes_.size()) png_error(png, "it is cut off");
    std::memcpy(into, reader.bytes_.data(), count);
    reader.bytes_ = reader.bytes_.subspan(count);
  }

  bool read_header() {
    if (setjmp(place_) != 0) return false;
    // The library may call fail() from here on, also for warnings, so the place of the jump is set before.
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &fail, &fail);
    if (png_ == nullptr) return false;
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return false;
    png_set_read_fn(png_, this, &take);
    // Limits of the library come before it takes memory. sized_picture() then limits the product of both sides.
    png_set_user_limits(png_, kMostPngSide, kMostPngSide);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_benign_errors(png_, 0);
    // Less than zero: all that libpng knows but those that pixels need.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  bool choose_pixels(int channels) {
    if (setjmp(place_) != 0) return false;
    png_set_strip_16(png_);
    png_set_palette_to_rgb(png_);
    const bool is_gray = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
    if (is_gray) {
      png_set_expand_gray_1_2_4_to_8(png_);
      if (channels > 1) png_set_gray_to_rgb(png_);
    }
    if (channels == 4) {
      if (png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png_);
      png_set_add_alpha(png_, 0xFF, PNG_FILLER_AFTER);  // does nothing where there is alpha
    } else {
      png_set_strip_alpha(png_);
    }
    // The number of passes, which png_read_image() knows by itself.
    static_cast<void>(png_set_interlace_handling(png_));
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows() {
    if (setjmp(place_) != 0) return false;
    png_read_image(png_, rows_.data());
    // Reads the chunks after the pixels: a file that ends before IEND is cut off.
    png_read_end(png_, nullptr);
    return true;
  }

  // In place: pixel i is read before it is written, and it lies at or after the byte that it becomes.
  static void turn_gray(Picture& picture) {
    const std::size_t count = picture.pixels.size() / 3;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* const color = picture.pixels.data() + 3 * i;
      // 0.299 R + 0.587 G + 0.114 B in units of 2^-16, rounded.
      picture.pixels[i] =
          static_cast<std::uint8_t>((19595U * color[0] + 38470U * color[1] + 7471U * color[2] + 32768U) >> 16);
    }
    picture.pixels.resize(count);
    picture.channels = 1;
  }

  void require(bool succeeded) const {
    if (succeeded) return;
    throw Error(ErrorCode::invalid_file, fmt::format("{} is not a whole PNG picture: {}; fetch it again, or remove it",
                                                     quoted_path(path_), shown_text(message_.data())));
  }

  std::span<const std::uint8_t> bytes_;  // what is not read yet
  const std::string& path_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
  std::array<char, 200> message_{"there is not enough memory"};
  std::jmp_buf place_{};
};

}  // namespace

Picture decode_png(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options, const std::string& path) {
  return PngReader(bytes, path).read(options);
}

}  // namespace holdfast
