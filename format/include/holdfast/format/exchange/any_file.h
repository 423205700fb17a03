#pragma once

// A file of named arrays, whoever wrote it: Holdfast, safetensors, NumPy, Keras or another user of HDF5. What it is is
// seen from its content, not from its name. One array is read at a time, so that files larger than memory can be looked
// through where their format allows it: Holdfast's and safetensors'. The others are held in memory whole.

#include <cstddef>
#include <cstdint>
#include <functional>
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

class AnyFile {
 public:
  // Throws what the reader of its kind throws.
  static AnyFile open(FileSystem& files, const std::string& path);

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
  // file system threw.
  std::vector<std::byte> read(std::string_view name) const;
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
