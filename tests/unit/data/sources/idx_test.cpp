// IDX files come from outside: each way in which one can be cut, damaged or wrong has a test and an
// error of its own.

#include "holdfast/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "support/thrown.h"
#include "unit/data/support/idx_writer.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Idx : public testing::Test {
 protected:
  // Writes the content and reads it as a tensor, which must fail.
  void expect_refused(const Bytes& content, ErrorCode code, const std::string& reason) {
    write_plain(path("bad"), content);
    expect_error([&] { read_idx_tensor(path("bad")); }, code, "bad", reason);
  }

  template <typename Function>
  void expect_error(const Function& function, ErrorCode code, const std::string& file_name, const std::string& reason) {
    try {
      function();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), AllOf(HasSubstr(path(file_name)), HasSubstr(reason)));
    }
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  // Three images of two rows and three columns, and their labels.
  void write_digits() {
    Bytes pixels(18);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{100});
    pixels[0] = 0;
    pixels[1] = 255;
    write_plain(path("images"), idx_bytes({3, 2, 3}, pixels));
    write_plain(path("labels"), idx_bytes({3}, {7, 0, 9}));
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Idx, IsReadAsATensor) {
  write_plain(path("file"), idx_bytes({2, 3}, {0, 1, 2, 253, 254, 255}));

  const Tensor tensor = read_idx_tensor(path("file"));

  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_THAT(tensor.values(), ElementsAre(0, 1, 2, 253, 254, 255));
}

TEST_F(Idx, WithoutAxesHoldsOneElement) {
  write_plain(path("file"), idx_bytes({}, {42}));

  const Tensor tensor = read_idx_tensor(path("file"));

  EXPECT_EQ(tensor.shape(), Shape{});
  EXPECT_THAT(tensor.values(), ElementsAre(42));
}

TEST_F(Idx, IsReadFromGzipWhateverItsName) {
  const Bytes content = idx_bytes({4}, {9, 8, 7, 6});
  write_gzip(path("zipped.idx"), content);
  write_plain(path("plain.gz"), content);

  EXPECT_THAT(read_idx_tensor(path("zipped.idx")).values(), ElementsAre(9, 8, 7, 6));
  EXPECT_THAT(read_idx_tensor(path("plain.gz")).values(), ElementsAre(9, 8, 7, 6));
}

// Lengths around the pieces of 1 MiB in which the reader works.
TEST_F(Idx, IsReadCompletelyAtAnyLength) {
  for (const std::uint32_t length : {0U, 1048574U, 1048575U, 1048576U, 1048577U, 2097152U}) {
    Bytes elements(length, 1);
    if (length > 0) elements.back() = 200;
    write_plain(path("file"), idx_bytes({length}, elements));

    const Tensor tensor = read_idx_tensor(path("file"));

    ASSERT_EQ(tensor.values().size(), length);
    EXPECT_TRUE(length == 0 || tensor.values().back() == 200.0F) << length;
  }
}

TEST_F(Idx, GivesImagesAndLabelsAsSamples) {
  write_digits();

  const Dataset digits = read_idx(path("images"), path("labels"));
  std::vector<float> features(6);
  std::vector<float> targets(1);
  digits.load(0, 0, 0, {.features = features, .targets = targets});

  EXPECT_EQ(digits.size(), 3);
  EXPECT_EQ(digits.feature_shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(digits.target_shape(), Shape{});
  EXPECT_EQ(targets[0], 7.0F);
  EXPECT_EQ(features[0], 0.0F);
  EXPECT_EQ(features[1], 1.0F);
  EXPECT_EQ(features[2], 102 * (1.0F / 255.0F));
  digits.load(0, 0, 2, {.features = features, .targets = targets});
  EXPECT_EQ(targets[0], 9.0F);
  EXPECT_EQ(features[5], 117 * (1.0F / 255.0F));
}

// A terminal obeys a control character, and a name may come from anywhere.
TEST_F(Idx, ShowsTheNamesOfItsFilesEscaped) {
  write_digits();
  write_plain(path("up\x7f"), idx_bytes({3}, {7, 0, 9}));
  write_plain(path("cut\x7f"), {0});

  EXPECT_THAT(read_idx(path("images"), path("up\x7f")).last_stage()->place(2),
              AllOf(HasSubstr("label 2 of \""), HasSubstr(R"(/up\x7f")")));
  EXPECT_THAT(sentence_thrown_by([&] { read_idx(path("up\x7f"), path("labels")); }),
              HasSubstr(R"(/up\x7f" holds an array of shape)"));
  EXPECT_THAT(sentence_thrown_by([&] { read_idx_tensor(path("cut\x7f")); }),
              HasSubstr(R"(/cut\x7f" is not a whole IDX file)"));
  EXPECT_THAT(sentence_thrown_by([&] { read_idx_tensor(path("none\x7f")); }), HasSubstr(R"(/none\x7f")"));
}

TEST_F(Idx, ScalesPixelsAsAsked) {
  write_digits();

  std::vector<float> features(6);
  std::vector<float> targets(1);
  read_idx(path("images"), path("labels"), {.scale = 1}).load(0, 0, 1, {.features = features, .targets = targets});

  EXPECT_THAT(features, ElementsAre(106, 107, 108, 109, 110, 111));
}

TEST_F(Idx, IsDescribedByItsContentNotItsPath) {
  write_digits();
  const std::string description = read_idx(path("images"), path("labels")).description();
  write_gzip(path("elsewhere"), read_plain(path("images")));
  const std::string moved = read_idx(path("elsewhere"), path("labels")).description();
  write_plain(path("labels"), idx_bytes({3}, {7, 0, 8}));
  const std::string relabelled = read_idx(path("images"), path("labels")).description();
  const std::string rescaled = read_idx(path("images"), path("labels"), {.scale = 1}).description();

  EXPECT_EQ(description, moved);
  EXPECT_NE(description, relabelled);
  EXPECT_NE(relabelled, rescaled);
  EXPECT_THAT(description, Not(HasSubstr(path(""))));
}

TEST_F(Idx, SaysThatAFileIsMissing) {
  expect_error([&] { read_idx_tensor(path("none")); }, ErrorCode::not_found, "none", "cannot open");
}

TEST_F(Idx, SaysThatAFolderCannotBeRead) {
  expect_error([&] { read_idx_tensor(path("")); }, ErrorCode::invalid_file, "", "it is a folder");
}

TEST_F(Idx, IsRefusedWhenItEndsInItsHeader) {
  expect_refused({}, ErrorCode::invalid_file, "ends within its first 4 bytes");
  expect_refused({0, 0, 8}, ErrorCode::invalid_file, "ends within its first 4 bytes");
  expect_refused({0, 0, 8, 1, 0, 0, 0}, ErrorCode::invalid_file, "ends within the extents");
  expect_refused({0, 0, 8, 255}, ErrorCode::invalid_file, "ends within the extents");
}

TEST_F(Idx, IsRefusedWithAnotherMagic) {
  expect_refused({'P', 'K', 8, 1, 0, 0, 0, 1, 5}, ErrorCode::invalid_file, "begins with the bytes 50 4b 08 01");
  expect_refused({0, 0, 7, 1, 0, 0, 0, 1, 5}, ErrorCode::invalid_file, "begins with the bytes 00 00 07 01");
}

TEST_F(Idx, IsRefusedWithAnotherElementType) {
  expect_refused({0, 0, 0x0D, 1, 0, 0, 0, 1, 0, 0, 0, 0}, ErrorCode::unsupported, "element type 13");
}

TEST_F(Idx, IsRefusedWhenElementsAreMissing) {
  expect_refused(idx_bytes({2, 5}, Bytes(9)), ErrorCode::invalid_file,
                 "its header promises 10 bytes of elements, but only 9 follow");
}

TEST_F(Idx, IsRefusedWhenBytesFollow) {
  expect_refused(idx_bytes({2, 5}, Bytes(11)), ErrorCode::invalid_file, "more bytes follow the 10 bytes");
  expect_refused(idx_bytes({0}, Bytes(1)), ErrorCode::invalid_file, "more bytes follow the 0 bytes");
  expect_refused(idx_bytes({1048576}, Bytes(1048577)), ErrorCode::invalid_file, "more bytes follow the 1048576 bytes");
}

// The header promises 2^60 bytes: a reader that believed it would fail or be killed.
TEST_F(Idx, TakesNoMemoryForAHugePromise) {
  write_plain(path("bad"), idx_bytes({1U << 30, 1U << 30}, Bytes(100)));

  expect_error([&] { read_idx_tensor(path("bad"), {.max_bytes = std::numeric_limits<std::int64_t>::max()}); },
               ErrorCode::invalid_file, "bad",
               "its header promises 1152921504606846976 bytes of elements, but only 100 follow");
}

TEST_F(Idx, IsRefusedWhenItsExtentsOverflow) {
  constexpr std::uint32_t kMost = 0xffffffff;
  expect_refused(idx_bytes({kMost, kMost, kMost}, Bytes(3)), ErrorCode::invalid_file, "63 bits");
  expect_refused(idx_bytes(std::vector<std::uint32_t>(255, kMost), Bytes(3)), ErrorCode::invalid_file, "63 bits");
}

TEST_F(Idx, IsRefusedWhenItsGzipStreamIsCutOff) {
  write_gzip(path("whole"), idx_bytes({100}, Bytes(100, 3)));
  const Bytes whole = read_plain(path("whole"));

  for (const std::size_t length : {std::size_t{11}, whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    expect_refused({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, ErrorCode::invalid_file, "");
  }
}

TEST_F(Idx, IsRefusedWhenItsGzipChecksumIsWrong) {
  write_gzip(path("whole"), idx_bytes({100}, Bytes(100, 3)));
  Bytes damaged = read_plain(path("whole"));
  damaged[damaged.size() - 8] ^= 1;  // the checksum's first byte

  expect_refused(damaged, ErrorCode::invalid_file, "gzip stream is damaged");
}

TEST_F(Idx, IsRefusedWhenImagesAndLabelsDifferInNumber) {
  write_digits();
  write_plain(path("labels"), idx_bytes({4}, {7, 0, 9, 1}));

  expect_error([&] { read_idx(path("images"), path("labels")); }, ErrorCode::invalid_file, "labels",
               "holds 3 images, but");
}

TEST_F(Idx, IsRefusedWhenImagesAndLabelsAreExchanged) {
  write_digits();

  expect_error([&] { read_idx(path("labels"), path("images")); }, ErrorCode::invalid_file, "labels",
               "an array of shape [3], not images");
  expect_error([&] { read_idx(path("images"), path("images")); }, ErrorCode::invalid_file, "images",
               "an array of shape [3, 2, 3], not labels");
}

TEST_F(Idx, RefusesAScaleThatIsNotFinite) {
  write_digits();

  EXPECT_THROW(read_idx(path("images"), path("labels"), {.scale = std::numeric_limits<float>::infinity()}), Error);
}

// A gzip stream of a few hundred kilobytes may hold gigabytes, which its header has to promise.
TEST_F(Idx, IsRefusedAboveItsLimitBeforeItIsExpanded) {
  write_digits();
  write_gzip(path("large"), idx_bytes({65536, 65536}, {}));

  expect_error([&] { read_idx_tensor(path("large")); }, ErrorCode::invalid_file, "large",
               "has 4294967296 bytes of elements, more than the 2147483648 that IdxTensorOptions::max_bytes allows; "
               "raise the limit");
  expect_error([&] { read_idx(path("images"), path("labels"), {.max_bytes = 17}); }, ErrorCode::invalid_file, "images",
               "has 18 bytes of elements, more than the 17 that IdxOptions::max_bytes allows");
  EXPECT_EQ(read_idx(path("images"), path("labels"), {.max_bytes = 18}).size(), 3);
}

TEST_F(Idx, IsRefusedWhereMoreExpandsThanItPromisesWithinItsLimit) {
  write_gzip(path("file"), idx_bytes({4}, Bytes(3 << 20, 7)));

  expect_error([&] { read_idx_tensor(path("file"), {.max_bytes = 4}); }, ErrorCode::invalid_file, "file",
               "more bytes follow the 4 bytes of elements");
}

TEST_F(Idx, RefusesALimitThatNoFileCanKeep) {
  write_digits();

  EXPECT_THROW(read_idx(path("images"), path("labels"), {.max_bytes = 0}), Error);
  EXPECT_THROW(read_idx_tensor(path("images"), {.max_bytes = -1}), Error);
}

TEST(Mnist, HasTenThousandTestDigits) {
  const char* folder = std::getenv("HOLDFAST_TEST_DATA");
  if (folder == nullptr) GTEST_SKIP() << "HOLDFAST_TEST_DATA does not name a folder with mnist10k/t10k-*-ubyte.gz";
  const std::string prefix = std::string(folder) + "/mnist10k/t10k-";

  const Dataset digits = read_idx(prefix + "images-idx3-ubyte.gz", prefix + "labels-idx1-ubyte.gz");
  std::vector<float> features(784);
  std::vector<float> targets(1);
  std::vector<int> counts(10);
  for (std::int64_t i = 0; i < digits.size(); ++i) {
    digits.load(0, 0, i, {.features = features, .targets = targets});
    const auto [least, most] = std::minmax_element(features.begin(), features.end());
    ASSERT_EQ(*least, 0.0F) << i;
    ASSERT_GT(*most, 0.9F) << i;
    ASSERT_LE(*most, 1.0F) << i;
    ++counts.at(static_cast<std::size_t>(targets[0]));
  }

  EXPECT_EQ(digits.feature_shape(), (Shape{28, 28, 1}));
  // How often each digit occurs in the published test set.
  EXPECT_THAT(counts, ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
}

TEST_F(Idx, DoesNotWaitForTheWriterOfAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);

  try {
    read_idx(path("fifo"), path("fifo"));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_file);
    EXPECT_THAT(error.what(), HasSubstr("it is a FIFO, not a regular file"));
  }
}

}  // namespace
}  // namespace holdfast
