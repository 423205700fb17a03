#pragma once

// What the tests of array files share: a folder that goes away, arrays with content, and ways to damage files.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "support/temporary_folder.h"

namespace holdfast::format::testing {

struct Array {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

// With bytes that differ from array to array and hardly compress. `shape` must fit memory.
Array make_array(const std::string& name, DType dtype, std::vector<std::uint64_t> shape);

// Valid while `arrays` is.
std::vector<ArrayView> views(const std::vector<Array>& arrays);

// Of several element types, contiguous and in chunks: about 20 KB as a file.
std::vector<Array> small_arrays();

// Expects HDF5 to see in the file what its index says (views.h), too.
Digest write_arrays(const std::string& path, const std::vector<Array>& arrays, const std::string& metadata = "{}");

std::vector<std::byte> read_bytes(const std::string& path);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

// Gives an undamaged header the digest of a changed index, as a hostile or faulty writer could.
void sign(std::vector<std::byte>& bytes);

struct Thrown {
  ErrorCode code;
  std::string sentence;
};
// Fails the test when nothing is thrown.
Thrown thrown_by(const std::function<void()>& action);

}  // namespace holdfast::format::testing
