#include "unit/format/support/savepoints.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/format/array_file.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format::testing {
namespace {

// Arrays of several sectors, compact and chunked.
std::vector<Array> arrays_of(std::int64_t step) {
  std::vector<Array> arrays = {make_array("small", DType::f32, {33}), make_array("large", DType::f32, {1500})};
  for (Array& array : arrays) {
    for (std::byte& byte : array.bytes) byte ^= static_cast<std::byte>(step);
  }
  return arrays;
}

}  // namespace

void write_savepoint(FileSystem& files, const std::string& path, std::int64_t step, double loss) {
  const nlohmann::json metadata = {{"step", step}, {"metrics", {{"loss", loss}}}};
  const std::vector<Array> arrays = arrays_of(step);
  write_array_file(files, path, metadata.dump(), views(arrays));
}

std::int64_t read_savepoint(FileSystem& files, const std::string& path) {
  const ArrayFile file = ArrayFile::open(files, path);
  file.verify();
  const auto step = nlohmann::json::parse(file.metadata()).at("step").get<std::int64_t>();
  for (const Array& array : arrays_of(step)) {
    EXPECT_TRUE(file.read(array.name) == array.bytes) << path << ": " << array.name << " is not of step " << step;
  }
  return step;
}

void damage(FileContents& contents, const std::string& path) {
  std::vector<std::byte>& bytes = contents.at(path);
  bytes.at(bytes.size() / 2) ^= std::byte{4};
}

}  // namespace holdfast::format::testing
