#pragma once

// Named arrays with their bytes and a JSON text, in memory: what readers of other frameworks' files return and their
// writers take.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

struct NamedArray {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;  // in elements; empty for a scalar
  std::vector<std::byte> bytes;      // row-major and little-endian, without padding
};

struct ArraySet {
  std::vector<NamedArray> arrays;  // sorted by name (as bytes), each name once
  std::string metadata = "{}";     // JSON
};

// Valid while `arrays` is.
std::vector<ArrayView> views(std::span<const NamedArray> arrays);

}  // namespace holdfast::format
