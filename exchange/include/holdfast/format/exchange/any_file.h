#pragma once

// A file of named arrays, whoever wrote it: Holdfast, safetensors, NumPy, Keras or another user of HDF5. What it is is
// seen from its content, not from its name. Opening a file takes memory for names, shapes and metadata. An HDF5 file
// that Holdfast did not write (Keras's too) is held as it lies on the disk, still compressed. Then arrays are read one
// at a time, or piece by piece where they are larger than memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

enum class FileKind {
  holdfast,     // array_file.h
  safetensors,  // safetensors.h
  npz,          // npz.h
  keras,        // keras.h: .keras, .weights.h5 and the older .h5
  hdf5,         // hdf5.h: any other
};

// "holdfast", "safetensors", "npz", "keras", "hdf5".
std::string_view name(FileKind kind);

// By the first bytes and, for an archive, the names in it; of an HDF5 file, `hdf5` is all that these tell, also where
// Keras wrote it. Throws Error{invalid_file} for what is none of them,
// Error{unsupported} for a file of pickled Python objects (PyTorch's .pt), and what the file system threw.
FileKind recognise(FileSystem& files, const std::string& path);

struct AnyFileOptions {
  // How much of a file may be in memory at once. For HDF5 that is the file itself and, where it is compressed, a row of
  // its chunks. A file that needs more gets Error{out_of_memory} before the memory is taken. Arrays that read() and
  // read_all() return whole do not count.
  std::uint64_t max_memory_bytes = std::numeric_limits<std::uint64_t>::max();
};

class AnyFile {
 public:
  // Throws what the reader of its kind throws. Damage in an array's elements is seen when they are read.
  static AnyFile open(FileSystem& files, const std::string& path, const AnyFileOptions& options = {});

  ~AnyFile();
  AnyFile(AnyFile&&) noexcept;
  AnyFile& operator=(AnyFile&&) noexcept;

  FileKind kind() const { return kind_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  // JSON, as the reader of its kind gives it.
  const std::string& metadata() const;
  // Sorted by name (as bytes). Only Holdfast's files say `digest` and `storage`; of the others, safetensors alone says
  // `stored_bytes`, which is 0 where nothing is known.
  std::span<const ArrayInfo> arrays() const;
  // Null when there is none of that name.
  const ArrayInfo* find(std::string_view name) const;
  // The array's elements, row-major and little-endian. Throws Error{not_found}, invalid_file for damage, and what the
  // file system threw. For HDF5 the first call takes all arrays into memory. Not for several threads at once.
  std::vector<std::byte> read(std::string_view name) const;
  // The elements of all arrays for which `wants` is true: array after array, in the order that suits the file, each in
  // pieces of whole elements, in order and of at most 64 MiB. An array without elements has no piece. NumPy's
  // column-major arrays come in their own order where they have more than 64 MiB. Throws as read() does, for some kinds
  // of damage only after the last piece of the array.
  void read_pieces(const std::function<bool(const ArrayInfo&)>& wants,
                   const std::function<void(const ArrayInfo&, std::span<const std::byte>)>& take) const;
  // All arrays and the metadata. `progress` is told how many of the arrays' bytes were read.
  ArraySet read_all(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}) const;

  // Null when it is no file of Holdfast.
  const ArrayFile* array_file() const;

  // What a kind of file can do; for any_file.cpp alone.
  class Content;

 private:
  AnyFile(std::string path, FileKind kind, std::uint64_t file_bytes, std::unique_ptr<Content> content);

  std::string path_;
  FileKind kind_;
  std::uint64_t file_bytes_;
  std::unique_ptr<Content> content_;
};

// The whole file in memory.
ArraySet read_any(FileSystem& files, const std::string& path);

}  // namespace holdfast::format
