#pragma once

// What an array of a file is: as it is given to a writer, and as the file's index describes it (array_file.h).
//
//   const std::vector<float> kernel(12);
//   const ArrayView view{"model/dense/kernel", DType::f32, {3, 4}, std::as_bytes(std::span(kernel))};

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/dtype.h"

namespace holdfast::format {

// The version of the format that is written and read. A file of another version is refused with
// Error{unsupported}.
inline constexpr std::uint32_t kFormatVersion = 2;

// The size of the header in front of the HDF5 part, which HDF5 calls a user block.
inline constexpr std::size_t kUserBlockBytes = 512;

// An array to be written. The bytes belong to the caller and must outlive the call.
struct ArrayView {
  std::string name;                  // "model/dense/kernel": UTF-8, 1 to 1024 bytes; '/' separates up to 32 parts
  DType dtype;                       // of its elements
  std::vector<std::uint64_t> shape;  // in elements, up to 32 axes; empty for a scalar; an axis may be 0
  std::span<const std::byte> bytes;  // row-major and little-endian, without padding
};

// How an array's elements are stored in the file.
enum class Storage : std::uint8_t {
  contiguous,  // as they are in memory
  zstd,        // in chunks: shuffled, then a zstd frame
};

// What the index of a file says about one array.
struct ArrayInfo {
  std::string name;                       // unique in its file
  DType dtype = DType::f32;               // of its elements
  std::vector<std::uint64_t> shape;       // in elements; empty for a scalar
  Digest digest;                          // of the bytes that read() returns
  std::uint64_t stored_bytes = 0;         // in the file, without padding; size_bytes() is the size in memory
  Storage storage = Storage::contiguous;  // how the elements lie in the file
};

// The size of the array's elements in memory.
std::uint64_t size_bytes(const ArrayInfo& array);

// How the elements are stored. What read() returns does not depend on it.
enum class Compression {
  fast,  // zstd frames of literals only: weights shrink as much as with zstd's levels, several times faster
  zstd,  // at WriteOptions::zstd_level
  none,  // no filter: any HDF5 reads it, and only the disk limits the speed
};

}  // namespace holdfast::format
