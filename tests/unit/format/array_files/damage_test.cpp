// Whatever happens to the bytes of a file, loading it fails before it returns a wrong array.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "holdfast/format/array_file.h"
#include "support/long_run.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/read_only_file_system.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::read_bytes;
using testing::ReadOnlyFile;
using testing::ReadOnlyFileSystem;
using testing::small_arrays;
using testing::thrown_by;
using testing::write_arrays;

class DamagedFile : public ::testing::Test {
 protected:
  DamagedFile() {
    write_arrays(folder_ / "a.h5", arrays_, R"({"step": 7})");
    bytes_ = read_bytes(folder_ / "a.h5");
  }

  // As a resume does: checks everything, then reads everything.
  static void load(std::span<const std::byte> bytes) {
    ReadOnlyFileSystem files(bytes);
    const ArrayFile file = ArrayFile::open(files, "run/a.h5", {.threads = 1});
    file.verify();
  }

  static testing::Thrown thrown_by_loading(std::span<const std::byte> bytes) {
    return thrown_by([&] { load(bytes); });
  }

  static void expect_invalid(std::span<const std::byte> bytes, const std::string& part) {
    const testing::Thrown thrown = thrown_by_loading(bytes);
    EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
    EXPECT_THAT(thrown.sentence, HasSubstr("run/a.h5"));
    EXPECT_THAT(thrown.sentence, HasSubstr(part));
  }

  // An array that can be read must be the one that was written.
  void expect_no_wrong_array(std::span<const std::byte> bytes) const {
    ReadOnlyFileSystem files(bytes);
    try {
      const ArrayFile file = ArrayFile::open(files, "run/a.h5", {.threads = 1});
      for (const testing::Array& array : arrays_) {
        try {
          ASSERT_TRUE(file.read(array.name) == array.bytes) << array.name;
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::invalid_file) << error.what();
        }
      }
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::invalid_file || error.code() == ErrorCode::unsupported) << error.what();
    }
  }

  TemporaryFolder folder_;
  const std::vector<testing::Array> arrays_ = arrays();
  std::vector<std::byte> bytes_;

 private:
  static std::vector<testing::Array> arrays() {
    std::vector<testing::Array> arrays = small_arrays();
    arrays.push_back(testing::make_array("model/embedding", DType::f32, {100, 130}));
    return arrays;
  }
};

TEST_F(DamagedFile, IsReportedForEveryFlippedBit) {
  ASSERT_GE(bytes_.size(), 65'536U);
  ASSERT_NO_THROW(load(bytes_));
  // 11 and 8 have no common divisor, so the short run flips each of the eight bits everywhere too.
  for (std::size_t bit = 0; bit < 8 * bytes_.size(); bit += is_long_run() ? 1 : 11) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes_[bit / 8] ^= mask;
    const testing::Thrown thrown = thrown_by_loading(bytes_);
    ASSERT_EQ(thrown.code, ErrorCode::invalid_file) << "bit " << bit << ": " << thrown.sentence;
    if (bit % 64 == 0) expect_no_wrong_array(bytes_);
    bytes_[bit / 8] ^= mask;
  }
}

TEST_F(DamagedFile, IsReportedWhenCutOffAnywhere) {
  for (std::size_t length = 0; length < bytes_.size(); length += length < 600 ? 1 : 97) {
    const testing::Thrown thrown = thrown_by_loading(std::span(bytes_).first(length));
    ASSERT_EQ(thrown.code, ErrorCode::invalid_file) << length << " bytes: " << thrown.sentence;
    ASSERT_THAT(thrown.sentence, HasSubstr("cut off")) << length << " bytes";
  }
}

TEST_F(DamagedFile, IsReportedWhenAppendedTo) {
  for (const std::size_t extra : {1, 512, 100'000}) {
    std::vector<std::byte> longer = bytes_;
    longer.resize(bytes_.size() + extra);

    expect_invalid(longer, "appended");
  }
}

// Another savepoint of the same run: same names, shapes and size, other content.
class DamagedByAnOlderFile : public DamagedFile {
 protected:
  DamagedByAnOlderFile() {
    std::vector<testing::Array> older = arrays_;
    for (testing::Array& array : older) std::reverse(array.bytes.begin(), array.bytes.end());
    write_arrays(folder_ / "older.h5", older, R"({"step": 6})");
    older_bytes_ = read_bytes(folder_ / "older.h5");
  }

  // Zeroes, swaps, cuts, appends to or mixes a copy of the file with the older one.
  std::vector<std::byte> damage(std::mt19937_64& random) const {
    std::vector<std::byte> damaged = bytes_;
    const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
    const std::size_t block = std::size_t{1} << (6 + below(8));
    const std::size_t first = below(damaged.size() - block);
    const std::size_t second = below(damaged.size() - block);
    const auto at = [](auto& bytes, std::size_t offset) { return bytes.begin() + static_cast<std::ptrdiff_t>(offset); };
    switch (below(5)) {
      case 0:
        std::fill_n(at(damaged, first), block, std::byte{0});
        break;
      case 1:
        std::copy_n(at(bytes_, first), block, at(damaged, second));
        std::copy_n(at(bytes_, second), block, at(damaged, first));
        break;
      case 2:
        damaged.resize(below(damaged.size()));
        break;
      case 3:
        damaged.resize(damaged.size() + block, static_cast<std::byte>(random()));
        break;
      default:
        for (std::size_t i = first; i < std::min(first + block, older_bytes_.size()); ++i) damaged[i] = older_bytes_[i];
    }
    return damaged;
  }

  std::vector<std::byte> older_bytes_;
};

TEST_F(DamagedByAnOlderFile, IsReportedForThousandsOfRandomDamages) {
  std::mt19937_64 random(20'261'121);
  const int damages = is_long_run() ? 100'000 : 4'000;
  for (int i = 0; i < damages; ++i) {
    const std::vector<std::byte> damaged = damage(random);
    if (damaged == bytes_) continue;  // the two blocks were equal
    const testing::Thrown thrown = thrown_by_loading(damaged);
    ASSERT_EQ(thrown.code, ErrorCode::invalid_file) << i << ": " << thrown.sentence;
    expect_no_wrong_array(damaged);
  }
}

TEST_F(DamagedFile, IsReportedWhenItShrinksWhileItIsRead) {
  class ShrinkingFile : public ReadOnlyFile {
   public:
    using ReadOnlyFile::ReadOnlyFile;
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
      return offset == 0 ? ReadOnlyFile::read_at(offset, out) : 0;
    }
  };
  class ShrinkingFileSystem : public ReadOnlyFileSystem {
   public:
    explicit ShrinkingFileSystem(std::span<const std::byte> bytes) : ReadOnlyFileSystem(bytes), content_(bytes) {}
    std::unique_ptr<File> open_for_reading(const std::string&) override {
      return std::make_unique<ShrinkingFile>(content_);
    }

   private:
    std::span<const std::byte> content_;
  };
  ShrinkingFileSystem files(bytes_);

  EXPECT_EQ(thrown_by([&] { ArrayFile::open(files, "run/a.h5"); }).code, ErrorCode::invalid_file);
}

TEST_F(DamagedFile, IsDistinguishedFromAForeignFile) {
  const std::string text(1000, 'x');

  expect_invalid(std::as_bytes(std::span(text)), "not a Holdfast file");
  expect_invalid(std::span(bytes_).subspan(512), "an HDF5 file without the header");
}

TEST_F(DamagedFile, IsDistinguishedFromAFileOfAnotherVersion) {
  for (const int version : {1, 3}) {
    // In every version of the format, the version is at offset 8 and the digest of the header at its end.
    bytes_[8] = static_cast<std::byte>(version);
    const Digest header = digest(std::span(bytes_).first(496));
    std::copy(header.bytes.begin(), header.bytes.end(), reinterpret_cast<std::uint8_t*>(bytes_.data()) + 496);

    const testing::Thrown thrown = thrown_by_loading(bytes_);

    EXPECT_EQ(thrown.code, ErrorCode::unsupported);
    EXPECT_THAT(thrown.sentence, HasSubstr("run/a.h5 has format version " + std::to_string(version)));
  }
}

}  // namespace
}  // namespace holdfast::format
