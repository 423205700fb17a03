#pragma once

// A file of named arrays, for programs that do not know which library wrote it: Holdfast, safetensors, NumPy, Keras or
// another user of HDF5. The content decides the kind, never the file's name.
//
// Opening a file takes memory for names, shapes and metadata. An HDF5 file of another program (Keras's too) takes more:
// it stays in memory as it is on disk, still compressed. Arrays are then read one at a time, or in pieces.
//
//   const AnyFile file = AnyFile::open(posix_file_system(), "model.npz");
//   for (const ArrayInfo& array : file.arrays()) std::puts(array.name.c_str());
//   const std::vector<std::byte> kernel = file.read("model/dense/kernel");

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

// The kinds of files that AnyFile opens.
enum class FileKind {
  holdfast,     // array_file.h
  safetensors,  // safetensors.h
  npz,          // npz.h
  keras,        // keras.h: .keras, .weights.h5 and the older .h5
  hdf5,         // hdf5.h: every other HDF5 file
  npy,          // one array of NumPy, which has the name "arr_0" here, as numpy.savez() would call it
};

// "holdfast", "safetensors", "npz", "keras", "hdf5", "npy".
std::string_view name(FileKind kind);

// Looks at the file's first bytes and, in an archive, at the names of its members. For HDF5 that another program wrote
// it returns `hdf5`, even where Keras wrote it: only AnyFile::open looks further. Throws Error{invalid_file} for any
// other content, Error{unsupported} for pickled Python objects (PyTorch's .pt), and what the file system threw.
FileKind recognise(FileSystem& files, const std::string& path);

struct AnyFileOptions {
  // The most memory that reading may take at once. For HDF5 this counts the file itself and, where it is compressed, a
  // row of its chunks. A file that needs more gets Error{out_of_memory} before that memory is allocated. Arrays that
  // read() and read_all() return whole are not counted.
  std::uint64_t max_memory_bytes = std::numeric_limits<std::uint64_t>::max();
  // Also opens an HDF5 file or an .npz of which only a part can be read. unreadable() names the rest.
  bool allow_unreadable = false;
};

// Movable. One thread at a time may use an object.
class AnyFile {
 public:
  // Throws what the reader of its kind throws. Damage within an array's elements is found when they are read.
  static AnyFile open(FileSystem& files, const std::string& path, const AnyFileOptions& options = {});

  ~AnyFile();
  AnyFile(AnyFile&&) noexcept;
  AnyFile& operator=(AnyFile&&) noexcept;

  FileKind kind() const { return kind_; }                   // what recognise() or a closer look found
  std::uint64_t file_bytes() const { return file_bytes_; }  // on disk
  // JSON, as the reader of its kind returns it.
  const std::string& metadata() const;
  // Sorted by name (as bytes). `digest` and `storage` are set for Holdfast's files alone, `stored_bytes` for these,
  // safetensors and .npy; 0 means unknown.
  std::span<const ArrayInfo> arrays() const;
  // What the file holds besides, a sentence each ("\"records\" has elements of an unsupported type (compounds)"); safe
  // to print. Empty without AnyFileOptions::allow_unreadable.
  std::span<const std::string> unreadable() const;
  // Null when the file has no array of that name. Valid as long as the object.
  const ArrayInfo* find(std::string_view name) const;
  // The array's elements, row-major and little-endian. For HDF5 the first call takes all arrays into memory. Throws
  // Error{not_found}, Error{invalid_file} for damage, and what the file system threw.
  std::vector<std::byte> read(std::string_view name) const;
  // Calls `take` with the elements of every array for which `wants` is true, one array after another, in the order that
  // suits the file. Each array comes in order, in pieces of whole elements, at most 64 MiB each; an array without
  // elements has no piece. NumPy's column-major arrays above 64 MiB stay column-major. Throws as read() does; some
  // kinds of damage are found only after the last piece of the array.
  void read_pieces(const std::function<bool(const ArrayInfo&)>& wants,
                   const std::function<void(const ArrayInfo&, std::span<const std::byte>)>& take) const;
  // All arrays and the metadata. `progress` receives how many bytes of the arrays were read, and how many there are.
  ArraySet read_all(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}) const;

  // Null for every kind but FileKind::holdfast.
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

// Opens the file and reads all of it into memory.
ArraySet read_any(FileSystem& files, const std::string& path);

}  // namespace holdfast::format
