#pragma once

// What the tests of array files share: a temporary folder, arrays with content, and ways to damage files.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/array_set.h"
#include "support/temporary_folder.h"

namespace holdfast::format::testing {

inline constexpr DType kAllTypes[] = {DType::f64, DType::f32, DType::f16,    DType::bf16, DType::i8,
                                      DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                                      DType::u32, DType::u64, DType::boolean};

using Array = NamedArray;

// An array with bytes that differ from array to array and hardly compress. `shape` must fit into memory.
Array make_array(const std::string& name, DType dtype, std::vector<std::uint64_t> shape);

// For each type: a scalar, a row, an empty array and one of several axes, sorted by name. Booleans are 0 and 1.
std::vector<Array> arrays_of_all_types();

// Compares names, types, shapes and bits.
void expect_equal(std::span<const NamedArray> actual, std::span<const NamedArray> expected);

// Arrays of several element types, contiguous and in chunks: about 20 KB as a file.
std::vector<Array> small_arrays();

// Also expects that HDF5 finds in the file what its index says (views.h).
Digest write_arrays(const std::string& path, const std::vector<Array>& arrays, const std::string& metadata = "{}");

std::vector<std::byte> read_bytes(const std::string& path);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

// Puts the digest of a changed index into the header, as a hostile or faulty writer could.
void sign(std::vector<std::byte>& bytes);

struct Thrown {
  ErrorCode code;
  std::string sentence;
};
// What `action` throws. Fails the test when it throws nothing.
Thrown thrown_by(const std::function<void()>& action);

}  // namespace holdfast::format::testing
