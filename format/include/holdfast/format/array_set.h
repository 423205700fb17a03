#pragma once

// Named arrays with their bytes and a JSON text, in memory. Readers of other frameworks' files return
// it, and writers of such files take it.
//
//   ArraySet set;
//   set.arrays.push_back({"model/bias", DType::f32, {4}, std::vector<std::byte>(16)});
//   write_array_file(posix_file_system(), "out.h5", set.metadata, views(set.arrays));
//
// All bytes are in memory at once. For larger files, ArrayFile reads one array at a time. Nothing here checks that an
// array has as many bytes as its type and shape say: readers do, and write_array_file() refuses others.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/dtype.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// An array that owns its elements.
struct NamedArray {
  std::string name;                  // unique in its set
  DType dtype;                       // of its elements
  std::vector<std::uint64_t> shape;  // in elements; empty for a scalar
  std::vector<std::byte> bytes;      // row-major and little-endian, without padding
};

// What a file of arrays contains.
struct ArraySet {
  std::vector<NamedArray> arrays;  // sorted by name (as bytes), each name once
  std::string metadata = "{}";     // JSON
};

// The arrays as write_array_file() takes them. Nothing is copied: the result is valid as long as
// `arrays`.
inline std::vector<ArrayView> views(std::span<const NamedArray> arrays) {
  std::vector<ArrayView> result;
  for (const NamedArray& array : arrays) result.push_back({array.name, array.dtype, array.shape, array.bytes});
  return result;
}

}  // namespace holdfast::format
