// Whatever happens to the bytes of a file, opening it says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/format/array_file.h"
#include "unit/format/support/array_files.h"
#include "user_block.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::read_bytes;
using testing::sign;
using testing::small_arrays;
using testing::thrown_by;
using testing::write_arrays;
using testing::write_bytes;

// One file in memory: hundreds of thousands of openings take no disk.
class MemoryFile : public File {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void write_at(std::uint64_t, std::span<const std::byte>) override {
    throw Error(ErrorCode::unsupported, "read only");
  }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
    const std::size_t begin = std::min<std::uint64_t>(offset, bytes_.size());
    const std::size_t count = std::min(out.size(), bytes_.size() - begin);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(begin), count, out.begin());
    return count;
  }
  std::uint64_t size_bytes() override { return bytes_.size(); }
  void sync() override {}

 private:
  std::span<const std::byte> bytes_;
};

class MemoryFileSystem : public FileSystem {
 public:
  explicit MemoryFileSystem(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::unique_ptr<File> open_for_reading(const std::string&) override { return std::make_unique<MemoryFile>(bytes_); }
  std::unique_ptr<File> create(const std::string&) override { refuse(); }
  void rename(const std::string&, const std::string&) override { refuse(); }
  void remove(const std::string&) override { refuse(); }
  void sync_folder(const std::string&) override { refuse(); }
  std::vector<std::string> list(const std::string&) override { refuse(); }
  bool exists(const std::string&) override { refuse(); }
  void create_folders(const std::string&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw Error(ErrorCode::unsupported, "read only"); }

  std::span<const std::byte> bytes_;
};

class DamagedFile : public ::testing::Test {
 protected:
  DamagedFile() {
    write_arrays(folder_ / "a.h5", small_arrays(), R"({"step": 7})");
    bytes_ = read_bytes(folder_ / "a.h5");
  }

  static testing::Thrown thrown_by_opening(std::span<const std::byte> bytes) {
    MemoryFileSystem files(bytes);
    return thrown_by([&] { ArrayFile::open(files, "run/a.h5"); });
  }

  static void expect_invalid(std::span<const std::byte> bytes, const std::string& part) {
    const testing::Thrown thrown = thrown_by_opening(bytes);
    EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
    EXPECT_THAT(thrown.sentence, HasSubstr("run/a.h5"));
    EXPECT_THAT(thrown.sentence, HasSubstr(part));
  }

  TemporaryFolder folder_;
  std::vector<std::byte> bytes_;
};

TEST_F(DamagedFile, IsReportedForEveryFlippedBit) {
  ASSERT_GT(bytes_.size(), 8'000U);
  for (std::size_t bit = 0; bit < 8 * bytes_.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes_[bit / 8] ^= mask;
    const testing::Thrown thrown = thrown_by_opening(bytes_);
    ASSERT_EQ(thrown.code, ErrorCode::invalid_file) << "bit " << bit << ": " << thrown.sentence;
    ASSERT_THAT(thrown.sentence, HasSubstr("run/a.h5"));
    bytes_[bit / 8] ^= mask;
  }
}

TEST_F(DamagedFile, IsReportedWhenCutOffAnywhere) {
  for (std::size_t length = 0; length < bytes_.size(); length += length < 600 ? 1 : 97) {
    const testing::Thrown thrown = thrown_by_opening(std::span(bytes_).first(length));
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

TEST_F(DamagedFile, IsReportedWhenABlockIsZeroed) {
  for (std::size_t offset = 512; offset + 512 <= bytes_.size(); offset += 512) {
    std::vector<std::byte> damaged = bytes_;
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(offset), 512, std::byte{0});
    if (damaged == bytes_) continue;  // it was zero before

    expect_invalid(damaged, "damaged");
  }
}

TEST_F(DamagedFile, IsReportedWhenItShrinksWhileItIsRead) {
  class ShrinkingFile : public MemoryFile {
   public:
    using MemoryFile::MemoryFile;
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) override {
      return offset == 0 ? MemoryFile::read_at(offset, out) : 0;
    }
  };
  class ShrinkingFileSystem : public MemoryFileSystem {
   public:
    explicit ShrinkingFileSystem(std::span<const std::byte> bytes) : MemoryFileSystem(bytes), content_(bytes) {}
    std::unique_ptr<File> open_for_reading(const std::string&) override {
      return std::make_unique<ShrinkingFile>(content_);
    }

   private:
    std::span<const std::byte> content_;
  };
  ShrinkingFileSystem files(bytes_);

  EXPECT_EQ(thrown_by([&] { ArrayFile::open(files, "run/a.h5"); }).code, ErrorCode::invalid_file);
}

TEST_F(DamagedFile, IsToldFromAForeignOne) {
  const std::string text(1000, 'x');

  expect_invalid(std::as_bytes(std::span(text)), "no Holdfast file");
  expect_invalid(std::span(bytes_).subspan(512), "an HDF5 file without the header");
}

TEST_F(DamagedFile, IsToldFromANewerOne) {
  // The version stands at offset 8, and the digest of the header at its end, in every version of the format.
  bytes_[8] = std::byte{2};
  const Digest header = digest(std::span(bytes_).first(496));
  std::copy(header.bytes.begin(), header.bytes.end(), reinterpret_cast<std::uint8_t*>(bytes_.data()) + 496);

  const testing::Thrown thrown = thrown_by_opening(bytes_);

  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_THAT(thrown.sentence, HasSubstr("run/a.h5 has format version 2, and this Holdfast reads version 1"));
}

TEST_F(DamagedFile, IsReportedWhenItsContentIsNoHdf5) {
  std::fill(bytes_.begin() + 512, bytes_.end(), std::byte{0xA5});
  sign(bytes_);

  expect_invalid(bytes_, "HDF5 cannot open it");
}

TEST_F(DamagedFile, IsReportedWhenItHasNothingButAHeader) {
  bytes_.resize(512);
  sign(bytes_);

  expect_invalid(bytes_, "HDF5 cannot open it");
}

// The index of chunks is the one structure of HDF5 1.8's that has no checksum of its own. What is wrong in it has to be
// found by bounds and by the frames' checksums when a faulty writer gave the file the right digests.
TEST_F(DamagedFile, GivesAnErrorOrTheSameArraysForAnyChangeOfASignedChunkIndex) {
  const std::vector<testing::Array> arrays = small_arrays();
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  const std::size_t index = text.find("TREE");
  ASSERT_NE(index, std::string_view::npos);
  for (std::size_t position = index; position < index + 200; ++position) {
    for (const std::byte change : {std::byte{0xFF}, std::byte{0x01}, std::byte{0x80}}) {
      std::vector<std::byte> changed = bytes_;
      changed[position] ^= change;
      sign(changed);
      MemoryFileSystem files(changed);
      try {
        const ArrayFile file = ArrayFile::open(files, "run/a.h5");
        for (const testing::Array& array : arrays) {
          ASSERT_TRUE(file.read(array.name) == array.bytes) << position << ": " << array.name;
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::invalid_file) << position << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::format
