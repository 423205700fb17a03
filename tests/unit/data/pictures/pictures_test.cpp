// Folders of pictures come from outside: each way in which a file can be cut, damaged, too large or somewhere else has
// a test and an error of its own.

#include "holdfast/data/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/picture_writer.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Pictures : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) { write_bytes(path(name), bytes); }

  // One picture of class "a" as it is loaded, in bytes as floats, at its own size.
  std::vector<float> pixels_of(const std::vector<std::uint8_t>& bytes, PictureOptions options) {
    write("one/a/picture.jpg", bytes);
    if (options.height == 0) options.height = 3;
    if (options.width == 0) options.width = 4;
    options.scale = 1;
    const Dataset data = read_pictures(path("one"), options);
    std::vector<float> row = loaded(data, 0, 0, 0);
    row.pop_back();
    return row;
  }

  void expect_refused(const std::vector<std::uint8_t>& bytes, ErrorCode code, const std::string& reason,
                      PictureOptions options = {}) {
    expect_error([&] { pixels_of(bytes, options); }, code, "one/a/picture.jpg", reason);
  }

  template <typename Function>
  void expect_error(const Function& function, ErrorCode code, const std::string& name, const std::string& reason) {
    try {
      function();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr(reason)));
    }
  }

 private:
  TemporaryFolder folder_;
};

std::vector<float> floats_of_bytes(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::vector<float> picture_labels(const Dataset& data) {
  std::vector<float> labels;
  for (std::int64_t i = 0; i < data.size(); ++i) labels.push_back(loaded(data, 0, 0, i).back());
  return labels;
}

constexpr PictureOptions kSmallPictures{.height = 3, .width = 4};

}  // namespace

TEST_F(Pictures, OrdersClassesAndFilesByTheBytesOfTheirNames) {
  const auto shade = [](std::uint8_t value) {
    return png_bytes({.height = 1, .width = 1, .channels = 1, .pixels = {value}});
  };
  write("data/b/2.png", shade(4));
  write("data/b/10.PNG", shade(3));
  write("data/B/deep/x.jpeg", shade(2));
  write("data/B/a.png", shade(1));
  write("data/\xC3\xA9/z.png", shade(5));
  write("data/b/notes.txt", {1, 2, 3});
  write("data/b/.hidden.png", {1, 2, 3});
  write("data/outside.png", shade(9));

  const Dataset data = read_pictures(path("data"), {.height = 1, .width = 1, .channels = 1, .scale = 1});

  EXPECT_THAT(picture_classes(path("data")), ElementsAre("B", "b", "\xC3\xA9"));
  EXPECT_THAT(first_features(data, 0), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(picture_labels(data), ElementsAre(0, 0, 1, 1, 2));
}

TEST_F(Pictures, SaysWhereTheyBelongIfTheirFolderHasNoFolders) {
  write("flat/x.png", png_bytes(gradient(3, 4, 3)));

  expect_error([&] { read_pictures(path("flat"), kSmallPictures); }, ErrorCode::invalid_argument, "flat",
               "move the pictures of each class into a folder with its name");
}

TEST_F(Pictures, TakesTheClassesThatAreNamedInTheirOrder) {
  for (const std::string name : {"a", "b", "c"}) write("data/" + name + "/x.png", png_bytes(gradient(3, 4, 3)));
  PictureOptions options = kSmallPictures;
  options.classes = {"c", "a"};
  options.one_hot = true;

  const Dataset data = read_pictures(path("data"), options);

  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.target_shape(), Shape{2});
  EXPECT_EQ(loaded(data, 0, 0, 1).back(), 1.0F);
  options.classes = {"c", "d"};
  expect_error([&] { read_pictures(path("data"), options); }, ErrorCode::invalid_argument, "\"d\"", "has no folder");
  options.classes = {"../data/a"};
  expect_error([&] { read_pictures(path("data"), options); }, ErrorCode::invalid_argument, "../data", "has no folder");
  options.classes = {"a", "a"};
  expect_error([&] { read_pictures(path("data"), options); }, ErrorCode::invalid_argument, "\"a\"", "twice");
}

TEST_F(Pictures, ReadsEveryKindOfPngToTheBit) {
  for (const int channels : {1, 3, 4}) {
    const WrittenPicture written = gradient(3, 4, channels);
    const std::vector<float> expected = floats_of_bytes(written.pixels);
    EXPECT_EQ(pixels_of(png_bytes(written), {.channels = channels}), expected);
    EXPECT_EQ(pixels_of(png_bytes(written, {.is_interlaced = true}), {.channels = channels}), expected);
    EXPECT_EQ(pixels_of(png_bytes(written, {.is_16_bits = true}), {.channels = channels}), expected);
  }
}

TEST_F(Pictures, ChangesTheColorsOfPngToThoseThatAreAskedFor) {
  const WrittenPicture gray{.height = 1, .width = 2, .channels = 1, .pixels = {7, 200}};
  const WrittenPicture gray_alpha{.height = 1, .width = 2, .channels = 2, .pixels = {7, 1, 200, 0}};
  const WrittenPicture color{.height = 1, .width = 2, .channels = 4, .pixels = {255, 0, 0, 9, 10, 20, 30, 0}};
  const auto read = [&](const WrittenPicture& picture, int channels) {
    return pixels_of(png_bytes(picture), {.height = 1, .width = 2, .channels = channels});
  };

  EXPECT_THAT(read(gray, 3), ElementsAre(7, 7, 7, 200, 200, 200));
  EXPECT_THAT(read(gray, 4), ElementsAre(7, 7, 7, 255, 200, 200, 200, 255));
  EXPECT_THAT(read(gray_alpha, 1), ElementsAre(7, 200));
  EXPECT_THAT(read(gray_alpha, 4), ElementsAre(7, 7, 7, 1, 200, 200, 200, 0));
  EXPECT_THAT(read(color, 3), ElementsAre(255, 0, 0, 10, 20, 30));
  // 0.299 * 255 = 76.2; 0.299 * 10 + 0.587 * 20 + 0.114 * 30 = 18.15
  EXPECT_THAT(read(color, 1), ElementsAre(76, 18));
}

TEST_F(Pictures, ReadsJpegOfEveryColorThatIsAskedFor) {
  const WrittenPicture color = gradient(16, 16, 3);
  const WrittenPicture gray = gradient(16, 16, 1);
  const auto largest_difference = [](const std::vector<float>& a, const std::vector<std::uint8_t>& b) {
    EXPECT_EQ(a.size(), b.size());
    float largest = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      largest = std::max(largest, std::abs(a[i] - static_cast<float>(b[i])));
    }
    return largest;
  };
  const PictureOptions options{.height = 16, .width = 16};
  PictureOptions one_channel = options;
  one_channel.channels = 1;
  PictureOptions four_channels = options;
  four_channels.channels = 4;

  // Quality 95 rounds coefficients to multiples of 1 to 12, so pixels of a gradient stay within a few units.
  EXPECT_LE(largest_difference(pixels_of(jpeg_bytes(color), options), color.pixels), 6);
  EXPECT_LE(largest_difference(pixels_of(jpeg_bytes(color, {.is_progressive = true}), options), color.pixels), 6);
  EXPECT_LE(largest_difference(pixels_of(jpeg_bytes(gray), one_channel), gray.pixels), 3);
  EXPECT_EQ(pixels_of(jpeg_bytes(color), four_channels)[3], 255);
  expect_refused(jpeg_bytes(gradient(16, 16, 4)), ErrorCode::unsupported, "CMYK");
}

TEST_F(Pictures, RefusesJpegThatIsCutOffAnywhere) {
  const std::vector<std::uint8_t> whole = jpeg_bytes(gradient(24, 24, 3), {.is_progressive = true});

  for (std::size_t size = 4; size < whole.size(); size += 7) {
    expect_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, ErrorCode::invalid_file,
                   "is not a whole JPEG picture");
  }
  std::vector<std::uint8_t> without_end = whole;
  without_end.resize(without_end.size() - 2);
  expect_refused(without_end, ErrorCode::invalid_file, "is not a whole JPEG picture");
}

TEST_F(Pictures, RefusesPngThatIsCutOffOrChangedAnywhere) {
  const std::vector<std::uint8_t> whole = png_bytes(gradient(3, 4, 3));

  for (std::size_t i = 8; i < whole.size(); ++i) {
    expect_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i)}, ErrorCode::invalid_file,
                   "is not a whole PNG picture");
    std::vector<std::uint8_t> changed = whole;
    changed[i] ^= 0x20;
    EXPECT_THROW(pixels_of(changed, {}), Error) << "byte " << i;
  }
}

TEST_F(Pictures, PassesOverColorProfilesThatLibpngWarnsOf) {
  const WrittenPicture written = gradient(3, 4, 3);

  EXPECT_EQ(pixels_of(png_bytes(written, {.has_profile_that_libpng_warns_of = true}), {}),
            floats_of_bytes(written.pixels));
}

TEST_F(Pictures, RefusesFilesThatAreNotPictures) {
  expect_refused({'G', 'I', 'F', '8', '9', 'a'}, ErrorCode::invalid_file, "neither a JPEG nor a PNG");
  expect_refused({}, ErrorCode::invalid_file, "neither a JPEG nor a PNG");
  write("formats/a/x.GIF", {1});
  expect_error([&] { read_pictures(path("formats"), kSmallPictures); }, ErrorCode::unsupported, "x.GIF", "convert it");
}

TEST_F(Pictures, RefusesWhatExceedsALimitBeforeItTakesMemory) {
  expect_refused(png_bytes(gradient(3, 4, 3)), ErrorCode::invalid_file, "raise max_pixels", {.max_pixels = 11});
  expect_refused(jpeg_bytes(gradient(3, 4, 3)), ErrorCode::invalid_file, "raise max_pixels", {.max_pixels = 11});
  expect_refused(png_bytes(gradient(3, 4, 3)), ErrorCode::invalid_file, "raise max_file_bytes", {.max_file_bytes = 20});
  // A JPEG of a few hundred bytes that declares 65,500 x 65,500 pixels.
  std::vector<std::uint8_t> bomb = jpeg_bytes(gradient(8, 8, 1));
  const std::vector<std::uint8_t> marker = {0xFF, 0xC0};
  const auto frame = std::search(bomb.begin(), bomb.end(), marker.begin(), marker.end());
  std::fill_n(frame + 5, 4, std::uint8_t{0xFF});
  frame[6] = frame[8] = 0xDC;
  expect_refused(bomb, ErrorCode::invalid_file, "raise max_pixels");
  write("many/a/1.png", {1});
  write("many/a/2.png", {1});
  expect_error([&] { read_pictures(path("many"), {.height = 1, .width = 1, .max_files = 1}); }, ErrorCode::invalid_file,
               "many", "raise max_files");
}

TEST_F(Pictures, RefusesLinksThatLeaveTheFolder) {
  write("secret.png", png_bytes(gradient(3, 4, 3)));
  write("data/a/x.png", png_bytes(gradient(3, 4, 3)));
  std::filesystem::create_symlink(path("data/a/x.png"), path("data/a/y.png"));
  EXPECT_EQ(read_pictures(path("data"), kSmallPictures).size(), 2);

  std::filesystem::create_symlink(path("secret.png"), path("data/a/z.png"));
  expect_error([&] { read_pictures(path("data"), kSmallPictures); }, ErrorCode::refused, "z.png", "leaves the folder");
  std::filesystem::remove(path("data/a/z.png"));
  std::filesystem::create_directory_symlink(path("data/a"), path("data/b"));
  expect_error([&] { read_pictures(path("data"), kSmallPictures); }, ErrorCode::refused, "data/b", "link to a folder");
}

TEST_F(Pictures, RefusesAFileThatBecameALinkOrAnotherSizeAfterItWasListed) {
  write("data/a/x.png", png_bytes(gradient(3, 4, 3)));
  write("data/a/y.png", png_bytes(gradient(3, 4, 3)));
  const Dataset data = read_pictures(path("data"), kSmallPictures);
  write("data/a/x.png", png_bytes(gradient(9, 9, 3)));
  std::filesystem::remove(path("data/a/y.png"));
  std::filesystem::create_symlink(path("data/a/x.png"), path("data/a/y.png"));

  expect_error([&] { loaded(data, 0, 0, 0); }, ErrorCode::invalid_file, "x.png", "when the folder was listed");
  expect_error([&] { loaded(data, 0, 0, 1); }, ErrorCode::invalid_file, "y.png", "symbolic link");
}

TEST_F(Pictures, DescribesNamesAndSizesAndNoPlace) {
  for (const std::string name : {"data", "copy", "renamed", "grown"}) {
    write(name + "/a/x.png", png_bytes(gradient(3, 4, 3)));
    write(name + "/a/" + (name == "renamed" ? "z" : "y") + ".png", png_bytes(gradient(name == "grown" ? 5 : 3, 4, 3)));
  }
  const auto description = [&](const std::string& name) {
    return read_pictures(path(name), kSmallPictures).description();
  };

  EXPECT_EQ(description("copy"), description("data"));
  EXPECT_NE(description("renamed"), description("data"));
  EXPECT_NE(description("grown"), description("data"));
  PictureOptions nearest = kSmallPictures;
  nearest.interpolation = PictureInterpolation::nearest;
  EXPECT_NE(read_pictures(path("data"), nearest).description(), description("data"));
}

TEST_F(Pictures, ReadsOnePictureWithTheBitsOfASample) {
  write("data/a/x.jpg", jpeg_bytes(gradient(20, 30, 3)));
  for (const DType dtype : {DType::f32, DType::u8}) {
    PictureOptions options{.height = 5, .width = 7, .dtype = dtype};
    const Dataset data = read_pictures(path("data"), options);
    const std::vector<float> row = loaded(data, 0, 0, 0);

    const Tensor picture = read_picture(path("data/a/x.jpg"), options);

    EXPECT_EQ(picture.shape(), Shape({1, 5, 7, 3}));
    const std::span<const std::byte> bytes = picture.bytes();
    EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(row)).first(bytes.size())));
  }
}

TEST_F(Pictures, CropsOrPadsToTheRatioOfTheSample) {
  const WrittenPicture wide{.height = 1, .width = 5, .channels = 1, .pixels = {1, 2, 3, 4, 5}};
  PictureOptions options{.height = 1, .width = 3, .channels = 1, .fit = PictureFit::crop};
  EXPECT_THAT(pixels_of(png_bytes(wide), options), ElementsAre(2, 3, 4));

  const WrittenPicture square{.height = 2, .width = 2, .channels = 1, .pixels = {1, 2, 3, 4}};
  options = {.height = 2, .width = 5, .channels = 1, .fit = PictureFit::pad};
  EXPECT_THAT(pixels_of(png_bytes(square), options), ElementsAre(0, 1, 2, 0, 0, 0, 3, 4, 0, 0));
}

TEST_F(Pictures, RefusesOptionsThatCanNeverWork) {
  write("data/a/x.png", png_bytes(gradient(3, 4, 3)));
  const auto refused = [&](const PictureOptions& options, const std::string& reason) {
    expect_error([&] { read_pictures(path("data"), options); }, ErrorCode::invalid_argument, "read_pictures()", reason);
  };
  refused({}, "a height and a width");
  refused({.height = 3, .width = 4, .channels = 2}, "not 2");
  refused({.height = 3, .width = 4, .dtype = DType::i64}, "not i64");
  refused({.height = 3, .width = 4, .max_pixels = 0}, "limits");
  expect_error([&] { read_pictures(path("nowhere"), kSmallPictures); }, ErrorCode::not_found, "nowhere",
               "No such file or directory; give the folder that holds a folder of pictures for each class");
  std::filesystem::create_directories(path("data/empty"));
  expect_error([&] { read_pictures(path("data"), kSmallPictures); }, ErrorCode::invalid_argument, "empty",
               "no picture");
}

}  // namespace holdfast
