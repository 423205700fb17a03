// Files of each released version of the format, made by the first build that wrote it (tests/golden). Every later
// build must read them. For a new version of the format, add files (HOLDFAST_WRITE_GOLDEN=1 writes those of the
// current version) and never change the old ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "holdfast/format/array_file.h"
#include "support/folders.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::kAllTypes;

constexpr const char* kGoldenMetadata = R"({"kind": "golden", "text": "ünï ☃", "step": 7})";

// Bytes from a formula that needs no library: byte i of the array is (131 i + the number of its type) mod 251.
// Booleans are 0 or 1.
Array golden_array(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape) {
  std::uint64_t bytes = size_bytes(dtype);
  for (const std::uint64_t extent : shape) bytes *= extent;
  Array array{.name = name, .dtype = dtype, .shape = shape, .bytes = std::vector<std::byte>(bytes)};
  for (std::size_t i = 0; i < array.bytes.size(); ++i) {
    const std::size_t value = (131 * i + static_cast<std::size_t>(dtype)) % 251;
    array.bytes[i] = static_cast<std::byte>(dtype == DType::boolean ? value % 2 : value);
  }
  return array;
}

// The large array takes only a few bytes when it is compressed. Files without compression do not have it.
std::vector<Array> golden_arrays(bool has_large_array) {
  std::vector<Array> arrays;
  for (const DType dtype : kAllTypes) {
    const std::string type(name(dtype));
    arrays.push_back(golden_array(type + "/scalar", dtype, {}));
    arrays.push_back(golden_array(type + "/empty", dtype, {0, 3}));
    arrays.push_back(golden_array(type + "/small", dtype, {2, 3, 5}));
    arrays.push_back(golden_array(type + "/chunked", dtype, {67, 83}));
  }
  if (has_large_array) {
    arrays.push_back(golden_array("several/chunks", DType::f32, {3, 100'000}));
    std::fill(arrays.back().bytes.begin(), arrays.back().bytes.end(), std::byte{7});
  }
  arrays.push_back(golden_array("模型/β", DType::f32, {3}));
  return arrays;
}

std::string path_of(const std::string& name) {
  return source_folder() + "/tests/golden/" + name;
}

void expect_golden(const std::string& path, bool has_large_array) {
  const ArrayFile file = ArrayFile::open(posix_file_system(), path);
  const std::vector<Array> arrays = golden_arrays(has_large_array);

  EXPECT_NO_THROW(file.verify());
  EXPECT_EQ(file.metadata(), kGoldenMetadata);
  ASSERT_EQ(file.arrays().size(), arrays.size());
  for (const Array& array : arrays) {
    const ArrayInfo* info = file.find(array.name);
    ASSERT_NE(info, nullptr) << array.name;
    EXPECT_EQ(info->dtype, array.dtype) << array.name;
    EXPECT_EQ(info->shape, array.shape) << array.name;
    EXPECT_TRUE(file.read(array.name) == array.bytes) << array.name;
  }
  testing::expect_views_equal(path);
}

struct Mode {
  std::string name;
  WriteOptions options;

  bool has_large_array() const { return options.compression != Compression::none; }
};
const std::vector<Mode> kModes = {{"fast", {}},
                                  {"zstd-3", {.compression = Compression::zstd, .zstd_level = 3}},
                                  {"none", {.compression = Compression::none}}};

TEST(GoldenFile, IsReadInVersion2) {
  for (const Mode& mode : kModes) expect_golden(path_of("version-2-" + mode.name + ".h5"), mode.has_large_array());
}

TEST(GoldenFile, IsStillWhatTheWriterOfThisVersionMakes) {
  const TemporaryFolder folder;
  const bool writes_golden = std::getenv("HOLDFAST_WRITE_GOLDEN") != nullptr;
  for (const Mode& mode : kModes) {
    const std::string name = "version-" + std::to_string(kFormatVersion) + "-" + mode.name + ".h5";
    const std::string path = writes_golden ? path_of(name) : folder / name;

    write_array_file(posix_file_system(), path, kGoldenMetadata, views(golden_arrays(mode.has_large_array())),
                     mode.options);

    expect_golden(path, mode.has_large_array());
  }
}

}  // namespace
}  // namespace holdfast::format
