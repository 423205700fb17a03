// libjpeg reports failures by a function that must not return, so it jumps (longjmp). Each call of the library is made
// in a function of its own that sets the place of the jump and has no object with a destructor; what owns memory lives
// outside. Warnings end decoding too: the library goes on with gray pixels where a file is cut off.
// docs/decisions/pictures.md

#include "data/pictures/jpeg_decoder.h"

#include <fmt/format.h>

#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>

// After <cstdio>: the header uses FILE and size_t, and includes neither.
#include <jpeglib.h>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

// A progressive file of a few hundred bytes may ask for thousands of passes over all pixels. Encoders make about ten.
constexpr int kMostScans = 100;

// The object must not move: libjpeg keeps pointers to the members below, and jumps back into functions of it.
class JpegReader {
 public:
  JpegReader(std::span<const std::uint8_t> bytes, const std::string& path) : bytes_(bytes), path_(path) {
    info_.err = jpeg_std_error(&errors_);
    // Must not return, or the library would go on with broken data. Its default ends the process.
    errors_.error_exit = [](j_common_ptr info) { of(info).jump_with_message(); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      // Levels from 0 on are traces.
      if (level < 0) of(info).jump_with_message();
    };
    errors_.output_message = [](j_common_ptr) {};
    // Called by the library now and then while it decodes, and so the one place where its work can be limited.
    progress_.progress_monitor = [](j_common_ptr info) {
      if (of(info).info_.input_scan_number > kMostScans) of(info).jump("it has too many scans");
    };
    info_.client_data = this;
  }
  // Allowed at any time, also after a jump and before jpeg_create_decompress(): all of `info_` is 0 at first.
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Picture read(const PictureDecodeOptions& options) {
    require(read_header());
    // Four are CMYK or YCCK, and what they look like depends on a color profile, which is not read.
    if (info_.num_components != 1 && info_.num_components != 3) {
      throw Error(ErrorCode::unsupported, fmt::format("the JPEG picture {} has {} colors (CMYK?); convert it to RGB",
                                                      quoted_path(path_), info_.num_components));
    }
    // Outside of the functions that jump: it has a destructor, which a jump would pass over. It refuses too many pixels
    // before it takes their memory.
    Picture picture = sized_picture(info_.image_height, info_.image_width, options, path_);
    info_.out_color_space = options.channels == 1 ? JCS_GRAYSCALE : options.channels == 3 ? JCS_EXT_RGB : JCS_EXT_RGBA;
    require(read_rows(picture.pixels.data(), static_cast<std::size_t>(picture.width * picture.channels)));
    return picture;
  }

 private:
  static JpegReader& of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

  bool read_header() {
    if (setjmp(place_) != 0) return false;
    jpeg_create_decompress(&info_);  // keeps `err` and `client_data`
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes_.data(), static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool read_rows(std::uint8_t* pixels, std::size_t row_bytes) {
    if (setjmp(place_) != 0) return false;
    // All three are set, whatever the defaults of a version are: the bits of a picture must not depend on the library.
    // Smoothing is for previews of progressive files, and would invent detail.
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    info_.do_block_smoothing = FALSE;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + info_.output_scanline * row_bytes;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    // Reads to the end of the picture, so that a file whose last bytes are missing is noticed.
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[noreturn]] void jump_with_message() {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), message_.data());
    std::longjmp(place_, 1);
  }

  [[noreturn]] void jump(const char* message) {
    // Into memory of the object, since a string could not be freed after the jump.
    std::snprintf(message_.data(), message_.size(), "%s", message);
    std::longjmp(place_, 1);
  }

  void require(bool succeeded) const {
    if (succeeded) return;
    throw Error(ErrorCode::invalid_file, fmt::format("{} is not a whole JPEG picture: {}; fetch it again, or remove it",
                                                     quoted_path(path_), shown_text(message_.data())));
  }

  std::span<const std::uint8_t> bytes_;
  const std::string& path_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
  std::jmp_buf place_{};
};

}  // namespace

Picture decode_jpeg(std::span<const std::uint8_t> bytes, const PictureDecodeOptions& options, const std::string& path) {
  return JpegReader(bytes, path).read(options);
}

}  // namespace holdfast
