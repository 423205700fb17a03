#pragma once

// Arrays that a program asks for by name, out of a file of NumPy, safetensors or HDF5. What else the file holds does
// not matter: arrays of other types, groups and attributes are passed over. AnyFile is for whole files. HDF5 is parsed
// in a process of its own, since its library trusts its input (hdf5_reader.h); a savepoint is read by ArrayFile, which
// checks digests.
//
//   const ChosenArrays chosen(posix_file_system(), "data.npz", ArrayFileKind::npz, {"x", "y"});
//   const std::vector<std::byte> x = chosen.read(0);   // elements of chosen.arrays()[0]

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// The kinds of files from which arrays can be chosen.
enum class ArrayFileKind {
  npy,          // one array, whose name here is ""
  npz,          // npz.h
  safetensors,  // safetensors.h
  hdf5,         // every HDF5 file; an array's name is its path, such as "train/x"
};

// ".npy", ".npz", "safetensors", "HDF5".
std::string_view name(ArrayFileKind kind);

// Looks at the first bytes of a file, never at its name. A .zip archive counts as npz. Throws Error{invalid_file} for
// a file that begins like none of these, and what the file system threw.
ArrayFileKind recognise_array_file(FileSystem& files, const std::string& path);

// Where the elements of an array lie in its file, row-major and one after another.
struct StoredElements {
  std::uint64_t offset = 0;    // of the first byte, from the start of the file
  bool is_big_endian = false;  // of its elements; false: little-endian
};

// Limits of ChosenArrays.
struct ChosenOptions {
  // The most memory that the elements of one array may take, and an HDF5 file as it is on disk. A file that needs more
  // gets Error{out_of_memory} before that memory is allocated.
  std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
};

// Movable. One thread at a time may use an object.
class ChosenArrays {
 public:
  // Opens the file and reads names, types and shapes. Throws Error{not_found} that names the arrays of the file if one
  // is missing, Error{invalid_file} for damaged or hostile content, Error{unsupported} if a chosen array has a type
  // that Holdfast lacks, and what the file system threw. `files` must outlive the object.
  ChosenArrays(FileSystem& files, const std::string& path, ArrayFileKind kind, const std::vector<std::string>& names,
               const ChosenOptions& options = {});
  ~ChosenArrays();
  ChosenArrays(ChosenArrays&&) noexcept;
  ChosenArrays& operator=(ChosenArrays&&) noexcept;

  // In the order of `names`.
  std::span<const ArrayInfo> arrays() const;
  // All elements of arrays()[index], row-major and little-endian. Throws Error{out_of_memory} above the limit, and
  // Error{invalid_file} for damage within the elements. Each call reads them again.
  std::vector<std::byte> read(std::size_t index) const;
  // Empty if the elements of arrays()[index] cannot be read row by row: they are compressed, column-major, or in HDF5.
  std::optional<StoredElements> stored(std::size_t index) const;

  // What each kind of file provides; for chosen_arrays.cpp alone.
  class Content;

 private:
  std::string path_;
  ChosenOptions options_;
  std::unique_ptr<Content> content_;
};

}  // namespace holdfast::format
