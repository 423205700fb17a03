#include "callbacks/png_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "data/pictures/png_decoder.h"
#include "holdfast/base/error.h"
#include "support/thrown.h"

namespace holdfast {

TEST(PngWriter, WritesThePixelsThatADecoderReads) {
  for (const int channels : {1, 3, 4}) {
    SCOPED_TRACE(std::to_string(channels) + " channels");
    std::vector<std::uint8_t> pixels;
    for (int i = 0; i < 5 * 7 * channels; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 37 % 256));

    const std::string png = png_of(pixels, 5, 7, channels);

    const std::vector<std::uint8_t> bytes(png.begin(), png.end());
    const Picture picture = decode_png(bytes, {.channels = channels, .max_pixels = 100}, "picture.png");
    EXPECT_EQ(picture.height, 5);
    EXPECT_EQ(picture.width, 7);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), picture.pixels.begin(), picture.pixels.end()));
  }
}

TEST(PngWriter, RefusesPicturesWithoutPixels) {
  EXPECT_EQ(code_thrown_by([] { png_of({}, 0, 7, 1); }), ErrorCode::invalid_argument);
}

}  // namespace holdfast
