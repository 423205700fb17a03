#include "bytes/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/zip_builder.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::bytes_of;
using testing::text_of;
using testing::thrown_by;
using testing::write_bytes;

std::string text_at(ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  source.read(offset, out);
  return text_of(out);
}

void expect_bytes_of_hello(ByteSource& source) {
  EXPECT_EQ(source.size_bytes(), 5U);
  EXPECT_EQ(text_at(source, 0, 5), "hello");
  EXPECT_EQ(text_at(source, 3, 2), "lo");
  EXPECT_EQ(text_at(source, 5, 0), "");
  for (const auto& range : {std::pair<std::uint64_t, std::size_t>{0, 6}, {4, 2}, {6, 1}}) {
    EXPECT_EQ(thrown_by([&] { text_at(source, range.first, range.second); }).code, ErrorCode::invalid_file);
  }
}

TEST(ByteSource, ReadsFromMemoryWithinItsBounds) {
  const std::vector<std::byte> bytes = bytes_of("hello");
  MemorySource source("a", bytes);

  expect_bytes_of_hello(source);
  EXPECT_EQ(thrown_by([&] { text_at(source, ~std::uint64_t{0}, 2); }).code, ErrorCode::invalid_file);
}

TEST(ByteSource, ReadsFromAFileWithinItsBounds) {
  TemporaryFolder folder;
  write_bytes(folder / "a", bytes_of("hello"));
  FileSource source(posix_file_system(), folder / "a");

  expect_bytes_of_hello(source);
}

TEST(ByteCursor, TakesLittleEndianNumbersAndNoMoreThanThereIs) {
  const std::string path = "a";
  const std::vector<std::byte> bytes = bytes_of("\1\2\xFF\4\5\6\1\2\3\4\5\6\7\x88xy");
  ByteCursor cursor(path, "its head", bytes);

  EXPECT_EQ(cursor.u16(), 0x0201);
  EXPECT_EQ(cursor.u32(), 0x060504FFU);
  EXPECT_EQ(cursor.u64(), 0x8807060504030201U);
  EXPECT_EQ(cursor.text(2), "xy");
  EXPECT_EQ(cursor.left(), 0U);
  EXPECT_EQ(cursor.text(0), "");
  EXPECT_THAT(thrown_by([&] { cursor.u16(); }).sentence, ::testing::HasSubstr("its head ends too early"));
}

}  // namespace
}  // namespace holdfast::format
