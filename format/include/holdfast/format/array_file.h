#pragma once

// Named arrays and a JSON text in one file. It is an HDF5 file that any HDF5 tool opens, after a header
// of 512 bytes and with digests that make damage impossible to miss. docs/format.md specifies the bytes.
//
// Three promises. A write is atomic: the path holds the whole file or what it held before. No byte is
// parsed before its digest was checked. The same names, metadata and arrays give the same bytes, with
// one version of HDF5 and of zstd. The file knows nothing of training: what the arrays and the JSON mean
// is up to the writer.
//
//   std::vector<float> weights(6);
//   const ArrayView view{"model/dense/kernel", DType::f32, {2, 3}, std::as_bytes(std::span(weights))};
//   write_array_file(posix_file_system(), "weights.h5", R"({"epoch": 3})", std::span(&view, 1));
//
//   const ArrayFile file = ArrayFile::open(posix_file_system(), "weights.h5");
//   file.read_into("model/dense/kernel", std::as_writable_bytes(std::span(weights)));

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_info.h"

namespace holdfast::format {

// Whether a file that begins with `head` is an array file, of any version, damaged or not. 8 bytes are
// enough.
bool begins_as_array_file(std::span<const std::byte> head);

// How write_array_file() stores arrays.
struct WriteOptions {
  Compression compression = Compression::fast;  // of all arrays
  int zstd_level = 1;  // of Compression::zstd, as zstd counts them: negative is faster, up to 22 is smaller
  int threads = 0;     // that compress and write; 0: as many as the process has cores; the bytes do not depend on it
  // Called with the number of bytes of arrays that are written: one call at a time, from any of the
  // threads.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

// Writes `path` atomically and durably: a temporary file in the same folder
// (holdfast/base/temporary_files.h), digests, fsync, rename, fsync of the folder. The order of `arrays`
// does not matter. Returns the file's digest.
//
// Blocks until the disk has the file. Takes a few MiB of memory per thread. May be called from several
// threads at once.
//
// Throws Error{invalid_argument} for names, shapes, sizes or metadata that the format cannot hold
// (metadata must be JSON), and what the file system throws. Then the temporary file is removed, if that
// is possible, and `path` holds what it held before. Only when the last step fails, the fsync of the
// folder, does `path` already hold the whole new file.
Digest write_array_file(FileSystem& files, const std::string& path, std::string_view metadata_json,
                        std::span<const ArrayView> arrays, const WriteOptions& options = {});

// How ArrayFile reads.
struct ReadOptions {
  int threads = 0;  // that read and decompress; 0: as many as the process has cores
};

// An open file. It keeps the index in memory and reads arrays from the disk on request. Every byte is
// checked against its digest before it is used. All functions may be called from several threads at
// once. The FileSystem must outlive the object.
class ArrayFile {
 public:
  // Opens a file. Reads and checks the header, the index and the metadata: a few pages. Throws
  // Error{invalid_file} for a file that is damaged or is not an array file, Error{unsupported} for
  // another version of the format, and Error{not_found, refused or input_output}.
  static ArrayFile open(FileSystem& files, const std::string& path, const ReadOptions& options = {});

  ~ArrayFile();
  ArrayFile(ArrayFile&&) noexcept;
  ArrayFile& operator=(ArrayFile&&) noexcept;

  // The JSON text, byte for byte as it was written.
  const std::string& metadata() const;
  // All arrays, sorted by name (as bytes). Valid as long as this object.
  std::span<const ArrayInfo> arrays() const;
  // The array of that name; null when the file does not have it.
  const ArrayInfo* find(std::string_view name) const;

  // The array's elements, row-major and little-endian. Throws Error{not_found} for an unknown name,
  // Error{invalid_file} for damage, Error{out_of_memory}, and what the file system throws.
  std::vector<std::byte> read(std::string_view name) const;
  // The same into memory of the caller. `out` must have exactly the array's size, otherwise it throws
  // Error{invalid_argument}. The content of `out` is undefined after an error.
  void read_into(std::string_view name, std::span<std::byte> out) const;

  // Where to put an array: `out` must have exactly its size.
  struct Target {
    std::string_view name;     // of an array of the file
    std::span<std::byte> out;  // owned by the caller
  };
  // A part that was read and checked: `bytes` of target number `target`, starting at byte `begin`. Always
  // whole elements.
  struct Arrival {
    std::size_t target = 0;  // index in the list of targets
    std::size_t begin = 0;   // offset in the target's `out`
    std::size_t bytes = 0;   // how many
  };
  // Reads many arrays at once, which keeps all threads busy when the arrays are small. `arrived` is
  // called for each piece as soon as it is in place: in any order, from several threads at once. An
  // exception from it ends the reading and is passed on.
  void read_into(std::span<const Target> targets, const std::function<void(const Arrival&)>& arrived = {}) const;

  // Passes the array's elements to `take`, in order and in parts of at most 64 MiB: for arrays that are
  // larger than memory. Each part is checked first. `take` is called on this thread; the part is valid
  // during the call.
  void read_parts(std::string_view name, const std::function<void(std::span<const std::byte>)>& take) const;

  // Checks every byte of the file, also those that only HDF5 uses, and every array against its digest.
  // Throws Error{invalid_file} for the first fault that it finds. `progress` is called with the number
  // of bytes of arrays that were checked: one call at a time, from any thread.
  void verify(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}) const;

  // Checks only the bytes that HDF5 uses: what verify() does beyond reading all arrays.
  void verify_structure() const;

  // The digest of the index, which contains the digests of everything else: two files are equal if and
  // only if their digests are.
  Digest file_digest() const;
  std::uint64_t file_bytes() const;  // on disk

 private:
  struct State;
  explicit ArrayFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace holdfast::format
