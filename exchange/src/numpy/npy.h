#pragma once

// One array as NumPy stores it: a header with the text of a Python dictionary, then the elements
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/base/error.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// How each .npy file begins.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// What is wrong with one array, or with the metadata next to it. A file of several arrays may be read without it.
class NpyError : public Error {
 public:
  // `problem` is the sentence without the file: "\"x\" has a header that NumPy does not write".
  NpyError(ErrorCode code, const std::string& sentence, std::string problem)
      : Error(code, sentence), problem_(std::move(problem)) {}

  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

struct NpyHeader {
  DType dtype = DType::f32;
  bool is_big_endian = false;
  bool is_fortran = false;  // the first axis varies fastest
  std::vector<std::uint64_t> shape;
  std::size_t data_offset = 0;
};

// The most bytes that parse_npy_header needs. A longer header is refused, since no plain array has one.
inline constexpr std::size_t kMaxNpyHeadBytes = 12 + 0xFFFF;

// Errors name `path` and `array`, which is "" for the one of a .npy file. Throws NpyError, with the codes of
// read_npz. Bytes after the header are ignored.
NpyHeader parse_npy_header(const std::string& path, const std::string& array, std::span<const std::byte> bytes);

// Returns the size of the elements in bytes. Throws NpyError when header and elements do not add up to `file_bytes`,
// the size of the member.
std::uint64_t check_npy_size(const std::string& path, const std::string& array, const NpyHeader& header,
                             std::uint64_t file_bytes);

// Returns the array, little-endian and row-major; `bytes` is a whole .npy file.
NamedArray parse_npy(const std::string& path, const std::string& name, std::vector<std::byte> bytes);

// For elements that were read without parse_npy. Swaps their bytes where the header says so, and refuses truth values
// other than 0 and 1. `elements` must be whole elements.
void check_and_swap(const std::string& path, const std::string& array, const NpyHeader& header,
                    std::span<std::byte> elements);

// Returns everything that precedes the elements. Its size is a multiple of 64 bytes.
std::vector<std::byte> compose_npy_header(const ArrayView& array);

}  // namespace holdfast::format
