// Changes of colors and tones against Keras (scripts/tests/picture_cases.py), and what holds of any picture and draw.

#include "holdfast/data/picture_colors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "support/thrown.h"
#include "unit/data/pictures/picture_references.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::int64_t kColorHeight = 4;
constexpr std::int64_t kColorWidth = 5;
const Shape kColorShape{kColorHeight, kColorWidth, 3};

// As colors() of picture_cases.py.
std::vector<float> reference_colors() {
  std::vector<float> pixels;
  for (std::int64_t row = 0; row < kColorHeight; ++row) {
    for (std::int64_t column = 0; column < kColorWidth; ++column) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        pixels.push_back(
            static_cast<float>((row * 61 + column * 23 + channel * 97 + row * column * channel * 5) % 256));
      }
    }
  }
  std::fill_n(pixels.begin(), 3, 0.0F);
  std::fill_n(pixels.begin() + 3, 3, 128.0F);
  std::fill_n(pixels.end() - 3, 3, 255.0F);
  return pixels;
}

Dataset colored(const std::vector<float>& pixels, std::int64_t samples = 1) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < samples; ++i) all.insert(all.end(), pixels.begin(), pixels.end());
  return from_tensors(Tensor(kColorShape.with_batch(samples), all), Tensor(Shape{samples}));
}

std::vector<float> pixels_of(const Dataset& data, std::int64_t epoch = 0, std::int64_t position = 0) {
  std::vector<float> row = loaded(data, 3, epoch, position);
  row.resize(data.input_layout().words());
  return row;
}

std::vector<float> changed(const PictureChange& change, const std::vector<float>& pixels = reference_colors()) {
  return pixels_of(colored(pixels).map(change));
}

// Keras computes in f32 in another order, so numbers up to 255 may differ in their last bits.
void expect_pixels(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-3) << "at " << i;
}

struct NamedChange {
  const char* name;
  PictureChange change;
};

// One of each kind, of pixels from 0 to `most`.
std::vector<NamedChange> all_changes(float most) {
  return {{"grayscale", random_grayscale(0.5F)},
          {"degeneration", random_color_degeneration({0, 1}, most)},
          {"hue", random_hue({-0.5F, 0.5F}, most)},
          {"saturation", random_saturation({0, 1}, most)},
          {"jitter", random_color_jitter({.brightness = {-0.5F, 0.5F},
                                          .contrast = {-0.5F, 0.5F},
                                          .saturation = {0.2F, 0.8F},
                                          .hue = {-0.2F, 0.2F},
                                          .max_value = most})},
          {"invert", random_invert(0.5F, most)},
          {"posterize", random_posterization(1, 8, most)},
          {"solarize", solarization({.addition = {0, 0.5F}, .threshold = {0, 1}, .max_value = most})},
          {"auto_contrast", auto_contrast(most)},
          {"equalize", equalization(most)},
          {"sharpness", random_sharpness({0, 1}, most)},
          {"blur", random_gaussian_blur({.probability = 0.5F, .sigma = {0.5F, 2}, .max_value = most})}};
}

}  // namespace

TEST(PictureColors, AreThoseOfKeras) {
  expect_pixels(changed(random_grayscale(1)), references::grayscale);
  expect_pixels(changed(random_color_degeneration({0.3F, 0.3F}, 255)), references::color_degeneration);
  expect_pixels(changed(random_hue({0.2F, 0.2F}, 255)), references::hue_forward);
  expect_pixels(changed(random_hue({-0.3F, -0.3F}, 255)), references::hue_back);
  expect_pixels(changed(random_saturation({0.2F, 0.2F}, 255)), references::less_saturation);
  expect_pixels(changed(random_saturation({0.7F, 0.7F}, 255)), references::more_saturation);
}

TEST(PictureTones, AreThoseOfKeras) {
  std::vector<float> dull = reference_colors();
  for (float& pixel : dull) pixel = pixel * 0.5F + 20;

  expect_pixels(changed(random_invert(1, 255)), references::inverted);
  expect_pixels(changed(random_posterization(1, 1, 255)), references::posterized_1);
  expect_pixels(changed(random_posterization(3, 3, 255)), references::posterized_3);
  expect_pixels(changed(random_posterization(8, 8, 255)), references::posterized_8);
  expect_pixels(changed(solarization({.addition = {0.1F, 0.1F}, .threshold = {0.6F, 0.6F}, .max_value = 255})),
                references::solarized);
  expect_pixels(changed(auto_contrast(255), dull), references::stretched);
  expect_pixels(changed(equalization(255)), references::equalized);
}

TEST(PictureFilters, AreThoseOfKeras) {
  expect_pixels(changed(random_sharpness({0.1F, 0.1F}, 255)), references::smooth);
  expect_pixels(changed(random_sharpness({0.9F, 0.9F}, 255)), references::sharp);
  expect_pixels(changed(random_gaussian_blur({.height = 5, .width = 3, .sigma = {0.8F, 0.8F}, .max_value = 255})),
                references::blurred);
}

TEST(PictureColors, JitterIsItsChangesInTheirOrder) {
  const std::vector<float> jittered =
      changed(random_color_jitter({.saturation = {0.2F, 0.2F}, .hue = {0.2F, 0.2F}, .max_value = 255}));

  const std::vector<float> in_turn = pixels_of(
      colored(reference_colors()).map(random_saturation({0.2F, 0.2F}, 255)).map(random_hue({0.2F, 0.2F}, 255)));
  expect_pixels(jittered, in_turn);
}

// Whatever is drawn: pixels stay within their range, and a sample of an epoch is always the same.
TEST(PictureColors, StayPicturesForAnyDraw) {
  for (const float most : {1.0F, 255.0F}) {
    std::vector<float> pixels = reference_colors();
    for (float& pixel : pixels) pixel *= most / 255;
    for (const NamedChange& each : all_changes(most)) {
      SCOPED_TRACE(each.name);
      const Dataset data = colored(pixels, 50).map(each.change);
      for (std::int64_t position = 0; position < 50; ++position) {
        const std::vector<float> found = pixels_of(data, 1, position);
        EXPECT_THAT(found, Each(testing::AllOf(testing::Ge(-1e-3F * most), testing::Le(1.001F * most))));
        EXPECT_EQ(found, pixels_of(data, 1, position));
      }
    }
  }
}

// The saturation of black next to a channel below 0 is infinite, and so is the hue of a color that is nearly gray.
TEST(PictureColors, MakeNoNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  for (const std::vector<float>& pixel : std::vector<std::vector<float>>{{0, -0.5F, -0.25F},
                                                                         {1e-40F, -3, 0},
                                                                         {1e-40F, 0, 0},
                                                                         {-1, -2, -3},
                                                                         {largest, -largest, 0},
                                                                         {std::nanf(""), 0.5F, 0.25F},
                                                                         {0.5F, 0.25F, std::nanf("")},
                                                                         {infinity, infinity, infinity},
                                                                         {infinity, -infinity, 0.5F}}) {
    SCOPED_TRACE(testing::PrintToString(pixel));
    std::vector<float> pixels(60, 0.25F);
    std::ranges::copy(pixel, pixels.begin());

    EXPECT_THAT(changed(random_hue({0.3F, 0.3F}), pixels), Each(testing::AllOf(testing::Ge(0.0F), testing::Le(1.0F))));
    EXPECT_THAT(changed(random_saturation({0.7F, 0.7F}), pixels),
                Each(testing::AllOf(testing::Ge(-largest), testing::Le(largest))));
    EXPECT_THAT(changed(random_color_jitter({.saturation = {0.7F, 0.7F}, .hue = {0.3F, 0.3F}}), pixels),
                Each(testing::Not(testing::IsNan())));
  }
}

// Samples that were standardized have such pixels. Only random_hue() cuts them to 0 to max_value.
TEST(PictureColors, ComputeWithPixelsBelowZero) {
  std::vector<float> pixels(60, 0.25F);
  std::ranges::copy(std::vector<float>{0.5F, -0.25F, -0.25F, -0.25F, -0.5F, -0.5F}, pixels.begin());
  const auto first_six = [&](const PictureChange& change) {
    std::vector<float> found = changed(change, pixels);
    found.resize(6);
    return found;
  };

  EXPECT_EQ(first_six(random_color_jitter({.hue = {0.5F, 0.5F}})),
            (std::vector<float>{-0.25F, 0.5F, 0.5F, -0.5F, -0.25F, -0.25F}));
  EXPECT_EQ(first_six(random_hue({0.5F, 0.5F})), (std::vector<float>{0, 0.5F, 0.5F, 0, 0, 0}));
  EXPECT_EQ(first_six(random_saturation({1, 1})), (std::vector<float>{0.5F, 0, 0, -0.25F, -0.25F, -0.25F}));
}

TEST(PictureColors, DrawForEachSampleAndEpoch) {
  for (const NamedChange& each : all_changes(255)) {
    SCOPED_TRACE(each.name);
    const Dataset data = colored(reference_colors(), 20).map(each.change);
    std::set<std::vector<float>> seen;
    for (std::int64_t position = 0; position < 20; ++position) seen.insert(pixels_of(data, 0, position));
    for (std::int64_t position = 0; position < 20; ++position) seen.insert(pixels_of(data, 1, position));

    if (each.change.draws) {
      EXPECT_GE(seen.size(), 2U);
      EXPECT_EQ(code_thrown_by([&] { data.cache(); }), ErrorCode::invalid_argument);
    } else {
      EXPECT_EQ(seen.size(), 1U);
      EXPECT_NO_THROW(data.cache());
    }
  }
}

TEST(PictureColors, RoundForBytesWhatTheyComputeForFloats) {
  const std::vector<float> pixels = reference_colors();
  std::vector<std::uint8_t> bytes(pixels.begin(), pixels.end());
  const Dataset of_bytes =
      from_tensors({{"picture", Tensor(kColorShape.with_batch(1), bytes)}}, {{"label", Tensor(Shape{1})}});
  for (std::size_t i = 0; i < all_changes(1).size(); ++i) {
    // A pixel of bytes has 255 whatever max_value says.
    const std::vector<float> floats = pixels_of(colored(pixels).map(all_changes(255)[i].change));
    const Dataset data = of_bytes.map(all_changes(1)[i].change);
    std::vector<float> row = pixels_of(data);
    const std::span<std::uint8_t> found = ArrayRow(data.input_layout(), row).elements<std::uint8_t>(0);

    ASSERT_EQ(found.size(), floats.size());
    for (std::size_t at = 0; at < found.size(); ++at) {
      EXPECT_EQ(found[at], std::lround(std::clamp(floats[at], 0.0F, 255.0F))) << all_changes(1)[i].name << " at " << at;
    }
  }
}

// Its cast to a byte was undefined, so its bin could lie anywhere.
TEST(PictureTones, TakeAPixelThatIsNoNumberForBlack) {
  std::vector<float> pixels = reference_colors();
  pixels[4] = 0;
  std::vector<float> with_nan = pixels;
  with_nan[4] = std::nanf("");

  EXPECT_EQ(changed(random_posterization(3, 3, 255), with_nan), changed(random_posterization(3, 3, 255), pixels));
  EXPECT_EQ(changed(equalization(255), with_nan), changed(equalization(255), pixels));
}

TEST(PictureColors, LeaveAPlainChannelAsItIs) {
  const std::vector<float> plain(60, 0.25F);

  EXPECT_EQ(changed(auto_contrast(), plain), plain);
  EXPECT_EQ(changed(equalization(), plain), plain);
  EXPECT_EQ(changed(random_hue({0.3F, 0.3F}), plain), plain);
}

TEST(PictureColors, NameAllTheirOptions) {
  EXPECT_NE(random_hue({0, 0.1F}).name, random_hue({0, 0.2F}).name);
  EXPECT_NE(random_invert(0.5F, 1).name, random_invert(0.5F, 255).name);
  EXPECT_NE(random_posterization(1, 8).name, random_posterization(2, 8).name);
  EXPECT_NE(solarization({.addition = {0, 0.1F}}).name, solarization({.addition = {0, 0.2F}}).name);
  EXPECT_NE(random_gaussian_blur({.height = 5}).name, random_gaussian_blur({.width = 5}).name);
  EXPECT_NE(random_color_jitter({.hue = {0, 0.1F}}).name, random_color_jitter({.hue = {0, 0.2F}}).name);
}

TEST(PictureColors, RefuseWrongRanges) {
  const auto refused = [](const std::function<void()>& make) {
    return code_thrown_by(make) == ErrorCode::invalid_argument;
  };

  EXPECT_TRUE(refused([] { random_grayscale(1.5F); }));
  EXPECT_TRUE(refused([] { random_grayscale(std::nanf("")); }));
  EXPECT_TRUE(refused([] { random_hue({0.2F, 0.1F}); }));
  EXPECT_TRUE(refused([] { random_hue({-1, 0.1F}); }));
  EXPECT_TRUE(refused([] { random_saturation({0, 2}); }));
  EXPECT_TRUE(refused([] { random_invert(0.5F, 0); }));
  EXPECT_TRUE(refused([] { random_posterization(0, 8); }));
  EXPECT_TRUE(refused([] { random_posterization(5, 3); }));
  EXPECT_TRUE(refused([] { solarization({.addition = {0, 2}}); }));
  EXPECT_TRUE(refused([] { random_sharpness({0, 1.5F}); }));
  EXPECT_TRUE(refused([] { random_gaussian_blur({.height = 2}); }));
  EXPECT_TRUE(refused([] { random_gaussian_blur({.sigma = {0, 1}}); }));
  EXPECT_TRUE(refused([] { random_color_jitter({.contrast = {0, 2}}); }));
  EXPECT_TRUE(refused([] { auto_contrast(-1); }));
  const Dataset gray = from_tensors(Tensor(Shape{1, 4, 4, 1}), Tensor(Shape{1}));
  EXPECT_THAT(sentence_thrown_by([&] { gray.map(random_hue({0, 0.1F})); }), HasSubstr("three channels"));
  EXPECT_NO_THROW(gray.map(random_invert(1)));
}

}  // namespace holdfast
