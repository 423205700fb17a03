// Any number of writers, each with its own copy of the state, must make exactly the file that one writer makes.

#include "holdfast/format/slice_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/format/support/array_files.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::make_array;
using testing::read_bytes;
using testing::thrown_by;

constexpr const char* kMetadata = R"({"step": 7})";

std::vector<Array> state() {
  std::vector<Array> arrays = {make_array("large", DType::f32, {500, 1201}), make_array("b", DType::u8, {7}),
                               make_array("c", DType::u16, {1'200'001}), make_array("d", DType::f64, {0})};
  for (int i = 0; i < 50; ++i) arrays.push_back(make_array("many/" + std::to_string(i), DType::f32, {33}));
  return arrays;
}

class SliceWriterTest : public ::testing::Test {
 protected:
  // Each writer has its own copy of the state, as each replica does.
  Digest write_in_slices(int slices, const WriteOptions& options) {
    const std::vector<std::vector<Array>> copies(static_cast<std::size_t>(slices), state());
    std::vector<SliceWriter> writers;
    std::vector<std::vector<std::byte>> summaries;
    std::vector<std::vector<ArrayView>> views;
    for (const auto& copy : copies) views.push_back(format::views(copy));
    for (int slice = 0; slice < slices; ++slice) {
      writers.emplace_back(posix_file_system(), path_, kMetadata, views[static_cast<std::size_t>(slice)],
                           Slice{slice, slices}, options);
    }
    for (SliceWriter& writer : writers) summaries.push_back(writer.encode());
    // The order in which they write does not matter.
    std::for_each(writers.rbegin(), writers.rend(), [&](SliceWriter& writer) { writer.write(summaries); });
    return writers.front().commit();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "a.h5";
};

TEST_F(SliceWriterTest, GivesTheSameFileAsOneWriter) {
  for (const Compression compression : {Compression::fast, Compression::none}) {
    const WriteOptions options{.compression = compression};
    const Digest alone =
        write_array_file(posix_file_system(), folder_ / "alone.h5", kMetadata, views(state()), options);
    for (const int slices : {1, 2, 3, 7, 100}) {
      EXPECT_EQ(write_in_slices(slices, options), alone) << slices;
      EXPECT_TRUE(read_bytes(path_) == read_bytes(folder_ / "alone.h5")) << slices;
    }
    testing::expect_views_equal(path_);
  }
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"a.h5", "alone.h5"}));
}

TEST_F(SliceWriterTest, LeavesTheOldFileWithoutCommit) {
  testing::write_arrays(path_, testing::small_arrays());
  const std::vector<std::byte> old_bytes = read_bytes(path_);
  {
    const std::vector<Array> arrays = state();
    const std::vector<ArrayView> views = format::views(arrays);
    SliceWriter writer(posix_file_system(), path_, kMetadata, views, {});
    const std::vector<std::vector<std::byte>> summaries{writer.encode()};
    writer.write(summaries);
  }

  EXPECT_TRUE(read_bytes(path_) == old_bytes);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"a.h5"});
}

TEST_F(SliceWriterTest, RefusesSummariesThatDoNotFit) {
  const std::vector<Array> arrays = state();
  const std::vector<ArrayView> views = format::views(arrays);
  SliceWriter first(posix_file_system(), path_, kMetadata, views, {.slice = 0, .slices = 2});
  SliceWriter second(posix_file_system(), path_, kMetadata, views, {.slice = 1, .slices = 2});
  const std::vector<std::byte> a = first.encode();
  const std::vector<std::byte> b = second.encode();
  const auto refuses = [&](const std::vector<std::vector<std::byte>>& summaries) {
    return thrown_by([&] { first.write(summaries); }).code == ErrorCode::invalid_argument;
  };

  EXPECT_TRUE(refuses({a}));
  EXPECT_TRUE(refuses({a, a}));
  EXPECT_TRUE(refuses({a, b, b}));
  for (std::size_t length = 0; length < b.size(); length += 7) {
    const std::vector<std::byte> cut(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_TRUE(refuses({a, cut})) << length;
  }
}

TEST_F(SliceWriterTest, RefusesSlicesThatDoNotExist) {
  for (const Slice slice : {Slice{-1, 2}, Slice{2, 2}, Slice{0, 0}}) {
    EXPECT_EQ(thrown_by([&] { SliceWriter(posix_file_system(), path_, "{}", {}, slice); }).code,
              ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace holdfast::format
