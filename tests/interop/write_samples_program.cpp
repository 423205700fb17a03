// write_samples FOLDER: writes files of every element type and shape for the Python tests, and the bytes that readers
// must get.
//
//   FOLDER/<mode>.h5            one file for each way to store arrays
//   FOLDER/samples.json         metadata of the files
//   FOLDER/arrays.json          a list of {name, dtype, shape, file}
//   FOLDER/<number>.bin         an array's bytes

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {
namespace {

const std::vector<DType> kTypes = {DType::f64, DType::f32, DType::f16,    DType::bf16, DType::i8,
                                   DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                                   DType::u32, DType::u64, DType::boolean};

// A fixed sequence of numbers (the upper bits of a 64-bit linear congruential generator), the same on every machine.
class Numbers {
 public:
  std::uint8_t next() {
    state_ = state_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return static_cast<std::uint8_t>(state_ >> 56);
  }

 private:
  std::uint64_t state_ = 1;
};

NamedArray make_array(const std::string& name, DType dtype, std::vector<std::uint64_t> shape, Numbers& numbers) {
  const std::uint64_t elements = std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  NamedArray array{name, dtype, std::move(shape), std::vector<std::byte>(elements * size_bytes(dtype))};
  for (std::size_t i = 0; i < array.bytes.size(); ++i) {
    // The highest byte of an element takes few values, as exponents do, so that compression has an effect.
    const bool is_highest = i % size_bytes(dtype) == size_bytes(dtype) - 1;
    const std::uint8_t number = numbers.next();
    if (dtype == DType::boolean) {
      array.bytes[i] = static_cast<std::byte>(number % 2);
    } else {
      array.bytes[i] = static_cast<std::byte>(is_highest ? 60 + (number & number >> 3 & 7) : number);
    }
  }
  return array;
}

std::vector<NamedArray> make_arrays() {
  Numbers numbers;
  std::vector<NamedArray> arrays;
  for (const DType dtype : kTypes) {
    const std::string type(name(dtype));
    arrays.push_back(make_array("scalar/" + type, dtype, {}, numbers));
    arrays.push_back(make_array("small/" + type, dtype, {3, 5}, numbers));
    arrays.push_back(make_array("empty/" + type, dtype, {4, 0, 2}, numbers));
    arrays.push_back(make_array("chunk/" + type, dtype, {101, 97}, numbers));
    // More than one chunk, and the last one is padded.
    arrays.push_back(make_array("chunks/" + type, dtype, {1100, 7, 151}, numbers));
  }
  arrays.push_back(make_array("long rows", DType::f32, {2, 300'001}, numbers));
  arrays.push_back(make_array("größe/重み/🙂", DType::f32, {2}, numbers));
  NamedArray zeros = make_array("zeros", DType::f32, {70'000}, numbers);
  std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
  arrays.push_back(zeros);
  return arrays;
}

void write_file(const std::filesystem::path& path, const void* data, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  write_file(path, text.data(), text.size());
}

void write_samples(const std::filesystem::path& folder) {
  const std::vector<NamedArray> arrays = make_arrays();
  const std::string metadata =
      nlohmann::json{{"kind", "sample"}, {"text", "größer ✓"}, {"list", {1, 2.5, nullptr}}}.dump();
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string file = std::to_string(i) + ".bin";
    write_file(folder / file, arrays[i].bytes.data(), arrays[i].bytes.size());
    list.push_back(
        {{"name", arrays[i].name}, {"dtype", name(arrays[i].dtype)}, {"shape", arrays[i].shape}, {"file", file}});
  }
  write_text(folder / "arrays.json", list.dump());
  write_text(folder / "samples.json", metadata);

  const std::vector<std::pair<std::string, WriteOptions>> modes = {
      {"fast.h5", {.compression = Compression::fast}},
      {"zstd.h5", {.compression = Compression::zstd, .zstd_level = 3}},
      {"none.h5", {.compression = Compression::none}}};
  for (const auto& [file, options] : modes) {
    write_array_file(posix_file_system(), folder / file, metadata, views(arrays), options);
  }
}

}  // namespace
}  // namespace holdfast::format

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_samples FOLDER\n";
    return 2;
  }
  try {
    holdfast::format::write_samples(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write_samples: " << error.what() << "\n";
    return 1;
  }
}
