// Holdfast reads a file by its index, everyone else through HDF5: both see the same.

#include <gtest/gtest.h>

#include "hdf5/tree.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::make_array;

constexpr DType kAllTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                               DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

// The type that HDF5 shows, and the attribute that says which it is.
DType shown_type(DType dtype) {
  if (dtype == DType::bf16) return DType::u16;
  return dtype == DType::boolean ? DType::u8 : dtype;
}

std::string text_attribute(const Hdf5Dataset& dataset, std::string_view name) {
  const Hdf5Attribute* attribute = find_attribute(dataset.attributes, name);
  return attribute == nullptr ? "" : std::get<std::string>(attribute->value);
}

void expect_same_views(const std::string& path) {
  const ArrayFile file = ArrayFile::open(posix_file_system(), path);
  const Hdf5Tree tree = read_hdf5_tree(posix_file_system(), path);

  // The metadata is a text, which a tree of arrays does not hold.
  ASSERT_EQ(tree.datasets.size(), file.arrays().size());
  for (const ArrayInfo& info : file.arrays()) {
    const Hdf5Dataset* dataset = tree.find_dataset(info.name);
    ASSERT_NE(dataset, nullptr) << info.name;
    EXPECT_EQ(dataset->array.dtype, shown_type(info.dtype)) << info.name;
    EXPECT_EQ(dataset->array.shape, info.shape) << info.name;
    EXPECT_TRUE(dataset->array.bytes == file.read(info.name)) << info.name;
    EXPECT_EQ(text_attribute(*dataset, "digest"), info.digest.hex()) << info.name;
    const bool is_named = shown_type(info.dtype) != info.dtype;
    EXPECT_EQ(text_attribute(*dataset, "dtype"), is_named ? std::string(name(info.dtype)) : "") << info.name;
  }
}

std::vector<Array> arrays_of_every_kind() {
  std::vector<Array> arrays;
  for (const DType dtype : kAllTypes) {
    const std::string type(name(dtype));
    arrays.push_back(make_array(type + "/scalar", dtype, {}));
    arrays.push_back(make_array(type + "/empty", dtype, {0, 3}));
    arrays.push_back(make_array(type + "/small", dtype, {2, 3, 5}));
    arrays.push_back(make_array(type + "/chunked", dtype, {67, 83}));
  }
  arrays.push_back(make_array("rows", DType::f32, {1000, 333}));
  arrays.push_back(make_array("long rows", DType::f64, {3, 131'073}));
  arrays.push_back(make_array("deep/er/est", DType::u16, {2, 3, 5, 70'001}));
  arrays.push_back(make_array("模型/β", DType::f32, {3}));
  return arrays;
}

TEST(View, IsTheSameThroughHdf5) {
  const TemporaryFolder folder;
  for (const Compression compression : {Compression::fast, Compression::zstd, Compression::none}) {
    write_array_file(posix_file_system(), folder / "a.h5", R"({"step": 1})", testing::views(arrays_of_every_kind()),
                     {.compression = compression});

    expect_same_views(folder / "a.h5");
  }
}

TEST(View, IsTheSameOfAFileWithoutArrays) {
  const TemporaryFolder folder;
  write_array_file(posix_file_system(), folder / "a.h5", "{}", {});

  expect_same_views(folder / "a.h5");
}

TEST(View, IsTheSameOfTenThousandArrays) {
  const TemporaryFolder folder;
  std::vector<Array> arrays;
  for (int i = 0; i < 10'000; ++i) {
    arrays.push_back(make_array("group" + std::to_string(i % 7) + "/" + std::to_string(i), DType::f32, {3}));
  }
  testing::write_arrays(folder / "a.h5", arrays);

  expect_same_views(folder / "a.h5");
}

TEST(View, IsTheSameOfTheGoldenFiles) {
  for (const char* name : {"version-2-fast.h5", "version-2-none.h5", "version-2-zstd-3.h5"}) {
    expect_same_views(std::string(HOLDFAST_SOURCE_DIR) + "/tests/golden/" + name);
  }
}

}  // namespace
}  // namespace holdfast::format
