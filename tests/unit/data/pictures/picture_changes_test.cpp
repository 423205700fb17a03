// Changes of pictures against Keras and PIL (scripts/tests/picture_cases.py), and what holds of any picture and draw.

#include "holdfast/data/picture_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/picture_motion.h"
#include "data/pictures/resize.h"
#include "holdfast/base/error.h"
#include "holdfast/data/dataset.h"
#include "unit/data/pictures/picture_references.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::int64_t kPictureHeight = 5;
constexpr std::int64_t kPictureWidth = 7;
constexpr std::int64_t kPictureChannels = 2;

// As picture() of picture_cases.py.
std::vector<float> reference_picture() {
  std::vector<float> pixels;
  for (std::int64_t row = 0; row < kPictureHeight; ++row) {
    for (std::int64_t column = 0; column < kPictureWidth; ++column) {
      for (std::int64_t channel = 0; channel < kPictureChannels; ++channel) {
        pixels.push_back(static_cast<float>((row * 37 + column * 11 + channel * 53 + row * column * 7) % 256));
      }
    }
  }
  return pixels;
}

// One sample, [height, width, channels], without a target that matters.
Dataset picture_data(const Shape& shape, const std::vector<float>& pixels, std::int64_t samples = 1) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < samples; ++i) all.insert(all.end(), pixels.begin(), pixels.end());
  return from_tensors(Tensor(shape.with_batch(samples), all), Tensor(Shape{samples}));
}

Dataset byte_data(const Shape& shape, const std::vector<std::uint8_t>& pixels) {
  return from_tensors({{"picture", Tensor(shape.with_batch(1), pixels)}}, {{"label", Tensor(Shape{1})}});
}

Dataset reference_data() {
  return picture_data(Shape{kPictureHeight, kPictureWidth, kPictureChannels}, reference_picture());
}

std::vector<float> picture_features(const Dataset& data, std::int64_t epoch = 0, std::int64_t position = 0) {
  std::vector<float> row = loaded(data, 3, epoch, position);
  row.resize(data.input_layout().words());
  return row;
}

std::vector<float> changed_picture(const PictureChange& change) {
  return picture_features(reference_data().map(change));
}

// Keras and PIL compute coordinates and sums in f32 and another order. Pixels reach 255, so a unit in the last place is
// 1.5e-5. Coordinates to 10 have errors of 1e-6, times differences of pixels to 255, times two axes.
constexpr float kPictureTolerance = 2e-3F;

void expect_near_picture(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], kPictureTolerance) << "element " << i;
}

std::vector<float> moved_picture(const PictureMotion& motion) {
  const std::vector<float> from = reference_picture();
  std::vector<float> into(from.size());
  move_picture(from, kPictureHeight, kPictureWidth, kPictureChannels, motion, into);
  return into;
}

void expect_refused_change(const std::function<void()>& action, const std::string& reason) {
  try {
    action();
    ADD_FAILURE() << "nothing was wrong; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

}  // namespace

TEST(PictureChanges, ResizeAsKerasDoes) {
  expect_near_picture(changed_picture(resize(3, 4)), references::bilinear_smaller);
  expect_near_picture(changed_picture(resize(8, 9)), references::bilinear_larger);
  expect_near_picture(changed_picture(resize(3, 4, PictureInterpolation::nearest)), references::nearest_smaller);
}

TEST(PictureChanges, ResizeWithAntialiasingAsPilDoes) {
  expect_near_picture(changed_picture(resize(2, 3, PictureInterpolation::antialiased)),
                      references::antialiased_smaller);
  expect_near_picture(changed_picture(resize(8, 9, PictureInterpolation::antialiased)), references::antialiased_larger);
}

TEST(PictureChanges, CropAndStandardizeAsKerasDoes) {
  expect_near_picture(changed_picture(center_crop(3, 4)), references::center_crop);
  expect_near_picture(changed_picture(standardize({100, 120}, {50, 30})), references::standardized);
}

TEST(PictureChanges, MoveAsKerasDoes) {
  expect_near_picture(moved_picture({.turns = 0.1F}), references::rotated_reflect);
  expect_near_picture(moved_picture({.turns = 0.1F, .edge = PictureEdge::repeat}), references::rotated_nearest);
  expect_near_picture(moved_picture({.turns = 0.1F, .edge = PictureEdge::constant}), references::rotated_constant);
  expect_near_picture(moved_picture({.down = 0.2F, .right = -0.1F}), references::shifted);
  expect_near_picture(moved_picture({.shown = 0.7F}), references::zoomed);
}

TEST(PictureChanges, ChangeContrastAsKerasDoes) {
  std::vector<float> pixels = reference_picture();
  change_contrast(pixels, kPictureChannels, 1.5F);
  for (float& pixel : pixels) pixel = std::clamp(pixel, 0.0F, 255.0F);

  expect_near_picture(pixels, references::contrast);
}

TEST(PictureChanges, DrawOneContrastAndOneBrightnessForAPicture) {
  const Dataset data =
      picture_data(Shape{1, 3, 1}, {0.4F, 0.5F, 0.6F}).map(augment({.brightness = 0.1F, .contrast = 0.3F}));
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<float> features = picture_features(data, epoch);
    // Each rounding is below 1e-7.
    EXPECT_NEAR(features[2] - features[1], features[1] - features[0], 1e-6);
    EXPECT_NEAR(features[1], 0.5, 0.1 + 1e-6);
    EXPECT_NEAR((features[2] - features[0]) / 0.2, 1, 0.3 + 1e-5);
  }
}

TEST(PictureChanges, KeepAPictureOfItsOwnSizeToTheBit) {
  EXPECT_EQ(changed_picture(resize(kPictureHeight, kPictureWidth)), reference_picture());
  EXPECT_EQ(changed_picture(resize(kPictureHeight, kPictureWidth, PictureInterpolation::antialiased)),
            reference_picture());
  EXPECT_EQ(changed_picture(center_crop(kPictureHeight, kPictureWidth)), reference_picture());
  EXPECT_EQ(changed_picture(random_crop(kPictureHeight, kPictureWidth)), reference_picture());
  EXPECT_EQ(changed_picture(augment({})), reference_picture());
  EXPECT_EQ(moved_picture({}), reference_picture());
}

TEST(PictureChanges, FlipInHalfOfAllEpochs) {
  const Dataset data = picture_data(Shape{1, 2, 1}, {1, 2}).map(augment({.flip = Flip::horizontal}));
  int flips = 0;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
    const std::vector<float> features = picture_features(data, epoch);
    EXPECT_EQ(features[0] + features[1], 3);
    flips += features[0] == 2 ? 1 : 0;
  }

  // Binomial with a deviation of 10.
  EXPECT_NEAR(flips, 200, 50);
}

TEST(PictureChanges, FlipTwiceGivesThePictureBack) {
  const PictureMotion flip{.flips_rows = true, .flips_columns = true};
  const std::vector<float> once = moved_picture(flip);
  std::vector<float> twice(once.size());
  move_picture(once, kPictureHeight, kPictureWidth, kPictureChannels, flip, twice);

  EXPECT_NE(once, reference_picture());
  EXPECT_EQ(twice, reference_picture());
}

TEST(PictureChanges, CropRandomlyAtEveryPlace) {
  const Dataset data = picture_data(Shape{2, 3, 1}, {1, 2, 3, 4, 5, 6}).map(random_crop(2, 2, {.padding = 1}));
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) found.insert(picture_features(data, epoch));

  EXPECT_EQ(found.size(), 12U);  // three rows by four columns
  EXPECT_TRUE(found.contains({0, 0, 0, 1}));
  EXPECT_TRUE(found.contains({6, 0, 0, 0}));
  EXPECT_TRUE(found.contains({2, 3, 5, 6}));
}

TEST(PictureChanges, KeepValuesWithinTheirRange) {
  const std::vector<float> pixels(48, 0.9F);
  const Dataset data = picture_data(Shape{4, 4, 3}, pixels).map(augment({.rotate = 1, .brightness = 1, .contrast = 1}));
  std::set<float> seen;
  for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<float> features = picture_features(data, epoch);
    EXPECT_THAT(features, Each(testing::AllOf(testing::Ge(0.0F), testing::Le(1.0F))));
    seen.insert(features[0]);
  }

  EXPECT_GT(seen.size(), 10U);
}

TEST(PictureChanges, CutOutASquareOfThePartThatIsAskedFor) {
  const Dataset data = picture_data(Shape{8, 8, 1}, std::vector<float>(64, 1.0F)).map(augment({.cutout = 0.5F}));
  std::set<std::ptrdiff_t> sizes;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    const std::vector<float> features = picture_features(data, epoch);
    sizes.insert(std::ranges::count(features, 0.0F));
  }

  EXPECT_EQ(*sizes.rbegin(), 16);
  EXPECT_GE(*sizes.begin(), 4);  // the center lies within, and a corner is the least
}

TEST(PictureChanges, RoundBytesAndKeepTheirType) {
  const Dataset data = byte_data(Shape{1, 2, 1}, {10, 21});
  const auto bytes_of = [](const Dataset& changed) {
    std::vector<float> row = loaded(changed, 0, 0, 0);
    const auto bytes = std::as_bytes(std::span(row));
    return std::vector<int>{static_cast<int>(bytes[0]), static_cast<int>(bytes[1]), static_cast<int>(bytes[2])};
  };

  EXPECT_EQ(bytes_of(data.map(resize(1, 3))), (std::vector<int>{10, 16, 21}));
  EXPECT_EQ(data.map(resize(1, 3)).inputs()[0].dtype, DType::u8);
  EXPECT_EQ(data.map(augment({.flip = Flip::both})).inputs()[0].name, "picture");
  const Dataset standard = data.map(standardize({0}, {1}));
  EXPECT_EQ(standard.inputs()[0].dtype, DType::f32);
  EXPECT_FLOAT_EQ(picture_features(standard)[0], 10.0F / 255.0F);
}

TEST(PictureChanges, DrawByEpochAndSampleAlone) {
  const AugmentOptions all{.flip = Flip::both,
                           .rotate = 0.2F,
                           .shift_rows = 0.1F,
                           .shift_columns = 0.1F,
                           .zoom = 0.2F,
                           .brightness = 0.1F,
                           .contrast = 0.3F,
                           .cutout = 0.3F,
                           .max_value = 255};
  const Dataset data = picture_data(Shape{kPictureHeight, kPictureWidth, kPictureChannels}, reference_picture(), 4)
                           .map(random_crop(5, 5, {.padding = 2}))
                           .map(augment(all));
  std::set<std::vector<float>> found;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < 4; ++i) found.insert(picture_features(data, epoch, i));
  }

  EXPECT_EQ(found.size(), 12U);
  EXPECT_EQ(picture_features(data, 2, 1), picture_features(data, 2, 1));
  EXPECT_EQ(picture_features(data.skip(1), 2, 0), picture_features(data, 2, 1));
}

TEST(PictureChanges, DescribeAllOfTheirOptions) {
  const auto description = [](const PictureChange& change) { return reference_data().map(change).description(); };
  const std::vector<PictureChange> changes = {resize(4, 4),
                                              resize(4, 4, PictureInterpolation::nearest),
                                              center_crop(4, 4),
                                              random_crop(4, 4),
                                              random_crop(4, 4, {.padding = 1}),
                                              standardize({0}, {1}),
                                              standardize({0}, {2}),
                                              augment({}),
                                              augment({.rotate = 0.1F}),
                                              augment({.rotate = 0.2F}),
                                              augment({.cutout = 0.1F}),
                                              augment({.edge = PictureEdge::repeat})};
  std::set<std::string> texts;
  for (const PictureChange& change : changes) texts.insert(description(change));

  EXPECT_EQ(texts.size(), changes.size());
}

TEST(PictureChanges, RefuseWhatCanNeverWork) {
  const Dataset flat = from_tensors(Tensor(Shape{1, 4}), Tensor(Shape{1}));
  expect_refused_change([&] { flat.map(augment({})); }, "augment() takes pictures");
  expect_refused_change([] { resize(0, 4); }, "resize(): sides");
  expect_refused_change([] { reference_data().map(center_crop(8, 2)); }, "cannot be cut out");
  expect_refused_change([] { reference_data().map(random_crop(8, 2)); }, "cannot be cut out");
  expect_refused_change([] { random_crop(1, 1, {.padding = -1}); }, "padding");
  expect_refused_change([] { standardize({0, 1}, {1}); }, "as many means");
  expect_refused_change([] { standardize({0}, {0}); }, "above 0");
  expect_refused_change([] { reference_data().map(standardize({0, 1, 2}, {1, 1, 1})); }, "one for each channel");
  expect_refused_change([] { augment({.zoom = 1}); }, "zoom");
  expect_refused_change([] { augment({.rotate = -0.1F}); }, "rotate");
  expect_refused_change([] { augment({.max_value = 0}); }, "max_value");
}

}  // namespace holdfast
