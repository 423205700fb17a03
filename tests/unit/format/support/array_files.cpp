// Arrays whose bytes hardly compress, and files in which exactly one thing is wrong.

#include "unit/format/support/array_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <stdexcept>

#include "container/user_block.h"
#include "support/data/random_data.h"
#include "unit/format/support/views.h"

namespace holdfast::format::testing {

Array make_array(const std::string& name, DType dtype, std::vector<std::uint64_t> shape) {
  std::size_t bytes = size_bytes(dtype);
  for (const std::uint64_t extent : shape) bytes *= extent;
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = random_bytes(bytes, random)};
}

std::vector<Array> arrays_of_all_types() {
  std::vector<Array> arrays;
  for (const DType dtype : kAllTypes) {
    for (const std::vector<std::uint64_t>& shape :
         std::vector<std::vector<std::uint64_t>>{{}, {3}, {2, 3}, {2, 0, 5}}) {
      arrays.push_back(make_array(std::string(name(dtype)) + "/" + std::to_string(shape.size()), dtype, shape));
      if (dtype != DType::boolean) continue;
      for (std::byte& byte : arrays.back().bytes) byte &= std::byte{1};
    }
  }
  std::sort(arrays.begin(), arrays.end(), [](const Array& a, const Array& b) { return a.name < b.name; });
  return arrays;
}

void expect_equal(std::span<const NamedArray> actual, std::span<const NamedArray> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].name, expected[i].name);
    EXPECT_EQ(actual[i].dtype, expected[i].dtype) << expected[i].name;
    EXPECT_EQ(actual[i].shape, expected[i].shape) << expected[i].name;
    EXPECT_TRUE(actual[i].bytes == expected[i].bytes) << expected[i].name;
  }
}

std::vector<Array> small_arrays() {
  return {make_array("model/conv/kernel", DType::f32, {3, 3, 1, 6}),
          make_array("model/dense/kernel", DType::bf16, {70, 33}), make_array("model/dense/bias", DType::f32, {33}),
          make_array("step", DType::u64, {})};
}

Digest write_arrays(const std::string& path, const std::vector<Array>& arrays, const std::string& metadata) {
  const Digest digest = write_array_file(posix_file_system(), path, metadata, views(arrays));
  expect_views_equal(path);
  return digest;
}

std::vector<std::byte> read_bytes(const std::string& path) {
  const std::unique_ptr<File> file = posix_file_system().open_for_reading(path);
  std::vector<std::byte> bytes(file->size_bytes());
  bytes.resize(file->read_at(0, bytes));
  return bytes;
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void sign(std::vector<std::byte>& bytes) {
  const std::string path = "signed";
  UserBlock block = decode_user_block(path, std::span(bytes).first(kUserBlockBytes), bytes.size());
  block.index_digest = digest(std::span(bytes).subspan(block.index_offset, block.index_bytes));
  const auto encoded = encode(block);
  std::copy(encoded.begin(), encoded.end(), bytes.begin());
}

Thrown thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::unsupported, ""};
}

}  // namespace holdfast::format::testing
