// Shear and perspective against Keras (scripts/tests/picture_cases.py), and what holds of any picture and draw.

#include "holdfast/data/picture_warps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "data/pictures/picture_motion.h"
#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "support/thrown.h"
#include "unit/data/pictures/picture_references.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kWarpHeight = 5;
constexpr std::int64_t kWarpWidth = 7;
constexpr std::int64_t kWarpChannels = 2;
const Shape kWarpShape{kWarpHeight, kWarpWidth, kWarpChannels};

// As picture() of picture_cases.py.
std::vector<float> warp_reference() {
  std::vector<float> pixels;
  for (std::int64_t row = 0; row < kWarpHeight; ++row) {
    for (std::int64_t column = 0; column < kWarpWidth; ++column) {
      for (std::int64_t channel = 0; channel < kWarpChannels; ++channel) {
        pixels.push_back(static_cast<float>((row * 37 + column * 11 + channel * 53 + row * column * 7) % 256));
      }
    }
  }
  return pixels;
}

std::vector<float> warped(const PictureWarp& warp, PictureEdge edge) {
  const std::vector<float> pixels = warp_reference();
  std::vector<float> result(pixels.size());
  warp_picture(pixels, kWarpHeight, kWarpWidth, kWarpChannels, warp, edge, result);
  return result;
}

// Keras computes coordinates in f32: to 10, with errors of 1e-6, times differences of pixels to 255, times two axes.
void expect_warped(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-3) << "at " << i;
}

Dataset warp_data(std::int64_t samples = 1) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::vector<float> one = warp_reference();
    all.insert(all.end(), one.begin(), one.end());
  }
  return from_tensors(Tensor(kWarpShape.with_batch(samples), all), Tensor(Shape{samples}));
}

std::vector<float> warp_pixels(const Dataset& data, std::int64_t epoch = 0, std::int64_t position = 0) {
  std::vector<float> row = loaded(data, 3, epoch, position);
  row.resize(data.input_layout().words());
  return row;
}

TEST(PictureWarps, ShearAsKerasDoes) {
  const PictureWarp warp{.x_of_y = 0.3, .y_of_x = -0.2};

  expect_warped(warped(warp, PictureEdge::reflect), references::sheared_reflect);
  expect_warped(warped(warp, PictureEdge::constant), references::sheared_constant);
}

TEST(PictureWarps, ShowPerspectiveAsKerasDoes) {
  const PictureCorners corners = corners_of(kWarpHeight, kWarpWidth);
  PictureCorners moved = corners;
  moved[1].x *= 0.8;
  moved[2].y *= 1.2;
  moved[3].x *= 1.1;
  moved[3].y *= 0.7;

  expect_warped(warped(warp_between(corners, moved), PictureEdge::constant), references::in_perspective);
}

TEST(PictureWarps, AreTheIdentityWhereNothingIsDrawn) {
  const std::vector<float> same = warp_reference();

  EXPECT_EQ(warp_pixels(warp_data().map(random_shear({}))), same);
  EXPECT_EQ(warp_pixels(warp_data().map(random_perspective({.probability = 0}))), same);
  expect_warped(warp_pixels(warp_data().map(random_perspective({.scale = 0}))), same);
}

// Corners of a line, and such that some points of the result have no point of the picture.
TEST(PictureWarps, StayFiniteWhereNoPointIsShown) {
  const Dataset line = from_tensors(Tensor(Shape{1, 1, 4, 1}, {1, 2, 3, 4}), Tensor(Shape{1}));
  EXPECT_EQ(warp_pixels(line.map(random_perspective())), (std::vector<float>{1, 2, 3, 4}));

  for (std::int64_t epoch = 0; epoch < 300; ++epoch) {
    for (const float pixel : warp_pixels(warp_data().map(random_perspective()), epoch)) {
      EXPECT_TRUE(pixel >= 0 && pixel <= 255);
    }
  }
  for (const float pixel : warped({.k_of_x = -0.5}, PictureEdge::repeat)) EXPECT_TRUE(pixel >= 0 && pixel <= 255);
}

TEST(PictureWarps, ShearBothWays) {
  const Dataset data = warp_data().map(random_shear({.x = {0.5F, 0.5F}, .edge = PictureEdge::repeat}));
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) found.insert(warp_pixels(data, epoch));

  EXPECT_EQ(found.size(), 2U);
}

TEST(PictureWarps, DrawByEpochAndSampleAlone) {
  const Dataset data = warp_data(4).map(random_shear({.x = {0, 0.5F}, .y = {0, 0.5F}})).map(random_perspective());

  EXPECT_EQ(warp_pixels(data.skip(1), 2, 2), warp_pixels(data, 2, 3));
  EXPECT_NE(warp_pixels(data, 2, 2), warp_pixels(data, 2, 3));
  EXPECT_NE(warp_pixels(data, 1, 2), warp_pixels(data, 2, 2));
  EXPECT_NE(data.description(), warp_data(4).map(random_shear({})).map(random_perspective()).description());
}

TEST(PictureWarps, RoundBytes) {
  const Dataset bytes =
      from_tensors({{"picture", Tensor(Shape{1, 2, 2, 1}, std::vector<std::uint8_t>{10, 20, 30, 40})}},
                   {{"label", Tensor(Shape{1})}});
  const Dataset changed = bytes.map(random_shear({.x = {0.5F, 0.5F}, .edge = PictureEdge::repeat}));

  EXPECT_EQ(changed.inputs()[0].dtype, DType::u8);
  const std::vector<float> row = loaded(changed, 0, 0, 0);
  const auto pixels = std::as_bytes(std::span(row));
  EXPECT_EQ(static_cast<int>(pixels[0]), 10);
  EXPECT_THAT(static_cast<int>(pixels[2]), testing::AnyOf(30, 35));
}

TEST(PictureWarps, RefuseWhatCanNeverWork) {
  EXPECT_THAT(sentence_thrown_by([] { random_shear({.x = {0, 1.5F}}); }), HasSubstr("x is 0 to 1, not 1.5"));
  EXPECT_THAT(sentence_thrown_by([] { random_shear({.y = {0.5F, 0.2F}}); }), HasSubstr("smaller end first"));
  EXPECT_THAT(sentence_thrown_by([] { random_perspective({.probability = 2}); }), HasSubstr("probability"));
  EXPECT_THAT(sentence_thrown_by([] { random_perspective({.scale = -1}); }), HasSubstr("scale"));
  EXPECT_THAT(sentence_thrown_by([] {
                from_tensors(Tensor(Shape{2, 3}), Tensor(Shape{2})).map(random_shear({}));
              }),
              HasSubstr("random_shear"));
}

}  // namespace
}  // namespace holdfast
