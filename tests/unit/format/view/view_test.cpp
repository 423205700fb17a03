// HDF5 must find in our files what their index says, for every kind of file. Other tests check the same for the
// files that they write.

#include <gtest/gtest.h>

#include "support/folders.h"
#include "unit/format/support/array_files.h"
#include "unit/format/support/views.h"

namespace holdfast::format {
namespace {

using testing::Array;
using testing::kAllTypes;
using testing::make_array;

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
    write_array_file(posix_file_system(), folder / "a.h5", R"({"step": 1, "text": "größe"})",
                     views(arrays_of_every_kind()), {.compression = compression});

    testing::expect_views_equal(folder / "a.h5");
  }
}

TEST(View, IsTheSameForAFileWithoutArrays) {
  const TemporaryFolder folder;
  write_array_file(posix_file_system(), folder / "a.h5", "{}", {});

  testing::expect_views_equal(folder / "a.h5");
}

TEST(View, IsTheSameForTenThousandArrays) {
  const TemporaryFolder folder;
  std::vector<Array> arrays;
  for (int i = 0; i < 10'000; ++i) {
    arrays.push_back(make_array("group" + std::to_string(i % 7) + "/" + std::to_string(i), DType::f32, {3}));
  }
  write_array_file(posix_file_system(), folder / "a.h5", "{}", views(arrays));

  testing::expect_views_equal(folder / "a.h5");
}

TEST(View, IsTheSameForTheGoldenFiles) {
  for (const char* name : {"version-2-fast.h5", "version-2-none.h5", "version-2-zstd-3.h5"}) {
    testing::expect_views_equal(source_folder() + "/tests/golden/" + name);
  }
}

}  // namespace
}  // namespace holdfast::format
