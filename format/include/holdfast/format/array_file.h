#pragma once

// Named arrays and a JSON text in one file: an HDF5 file that any HDF5 tool opens, behind a 512-byte header with the
// digests that make damage impossible to miss. docs/format.md is the specification of the bytes.
//
// It promises that a file stands at its path whole or not at all, that no parser sees a byte before the digest of the
// whole file was checked, and that the same names, metadata and arrays give the same bytes (with one version of HDF5
// and of zstd). It knows nothing of training: what the arrays and the JSON mean is their writer's business.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/dtype.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format {

// The version of the format that is written and read; docs/format.md says what a reader does with others.
inline constexpr std::uint32_t kFormatVersion = 2;

// In front of a file's HDF5 part.
inline constexpr std::size_t kUserBlockBytes = 512;

// An array to be written. The bytes belong to the caller.
struct ArrayView {
  std::string name;                  // "model/dense/kernel": UTF-8, 1 to 1024 bytes; '/' separates up to 32 parts
  DType dtype;                       //
  std::vector<std::uint64_t> shape;  // in elements, up to 32 axes; empty for a scalar; an axis may be 0
  std::span<const std::byte> bytes;  // row-major and little-endian, without padding
};

// How an array's elements lie in the file.
enum class Storage : std::uint8_t {
  contiguous,  // as they are in memory
  zstd,        // in chunks: shuffled, then a zstd frame
};

// Whether `head`, the beginning of a file, is that of an array file, of whatever version, damaged or not.
bool begins_as_array_file(std::span<const std::byte> head);

// What a file says of one of its arrays.
struct ArrayInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::uint64_t> shape;
  Digest digest;                   // of the bytes that read() returns
  std::uint64_t stored_bytes = 0;  // what the array's elements take in the file
  Storage storage = Storage::contiguous;
};

// The bytes that an array's elements take in memory.
std::uint64_t size_bytes(const ArrayInfo& array);

enum class Compression {
  fast,  // zstd frames of literals alone: weights shrink as much as with zstd's levels, several times faster
  zstd,  // at WriteOptions::zstd_level
  none,  // no filter: any HDF5 reads it, and the disk's speed is the only limit
};

struct WriteOptions {
  Compression compression = Compression::fast;
  int zstd_level = 1;  // of Compression::zstd, as zstd counts them: negative is faster, up to 22 is smaller
  int threads = 0;     // that compress and write; 0: as many as the process has cores. The bytes do not depend on it.
  // Told, one call at a time, how many of the arrays' bytes are written; from any of the threads.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

// Writes `path` whole or not at all, and makes it durable: a temporary name beside it
// (holdfast/base/temporary_files.h), digests, fsync, rename, fsync of the folder. The order of `arrays` does not
// matter. Returns the file's digest.
//
// Blocks until the disk has it. Takes a few MiB of memory a thread. May be called from several threads at once.
//
// Throws Error{invalid_argument} for names, shapes, sizes or metadata that the format cannot hold (metadata must be
// JSON), and what the file system threw. The temporary file is then removed, if that is possible, and whatever stood at
// `path` is untouched. Only if the last act fails, the fsync of the folder, does the whole file stand at `path`
// already.
Digest write_array_file(FileSystem& files, const std::string& path, std::string_view metadata_json,
                        std::span<const ArrayView> arrays, const WriteOptions& options = {});

struct ReadOptions {
  int threads = 0;  // that read and decompress; 0: as many as the process has cores
};

// An open file. It holds the file's index in memory and reads arrays from the disk as they are asked for; every byte is
// checked against its digest before anything looks at it. All functions may be called from several threads at once.
class ArrayFile {
 public:
  // Reads and checks the header, the index and the metadata, a few pages. Throws Error{not_found, refused,
  // input_output}, invalid_file for one that is damaged or no array file at all, and unsupported for another version of
  // the format, which is no damage.
  static ArrayFile open(FileSystem& files, const std::string& path, const ReadOptions& options = {});

  ~ArrayFile();
  ArrayFile(ArrayFile&&) noexcept;
  ArrayFile& operator=(ArrayFile&&) noexcept;

  // JSON, byte for byte as it was written.
  const std::string& metadata() const;
  // Sorted by name (as bytes).
  std::span<const ArrayInfo> arrays() const;
  // Null when there is none of that name.
  const ArrayInfo* find(std::string_view name) const;

  // The array's elements, row-major and little-endian. Throws Error{not_found}, invalid_file for damage, and what the
  // file system threw.
  std::vector<std::byte> read(std::string_view name) const;
  // `out` must have exactly the array's size, else Error{invalid_argument}. Its content is undefined after an error.
  void read_into(std::string_view name, std::span<std::byte> out) const;

  // Where an array is to go: `out` must have exactly its size.
  struct Target {
    std::string_view name;
    std::span<std::byte> out;
  };
  // What has come and was checked: `bytes` of target number `target`, from byte `begin` on; whole elements.
  struct Arrival {
    std::size_t target = 0;
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };
  // Many arrays at once, which keeps all threads busy when they are small. `arrived` is called for each piece as soon
  // as it is there, in no order, from several threads at once; what it throws ends the reading.
  void read_into(std::span<const Target> targets, const std::function<void(const Arrival&)>& arrived = {}) const;

  // The array's elements in order, in parts of at most 64 MiB: for arrays that are larger than memory. Each part is
  // checked before `take` gets it, on this thread.
  void read_parts(std::string_view name, const std::function<void(std::span<const std::byte>)>& take) const;

  // Checks every byte of the file, also those that only HDF5 looks at, and every array against its digest. Throws
  // Error{invalid_file} for the first that is wrong. `progress` is told, one call at a time and from any thread, how
  // many of the arrays' bytes were checked.
  void verify(const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = {}) const;

  // The part of verify() that reading all arrays leaves out: the bytes that only HDF5 looks at.
  void verify_structure() const;

  // Of the index, which has the digests of everything else: two files are equal if and only if these are.
  Digest file_digest() const;
  std::uint64_t file_bytes() const;

 private:
  struct State;
  explicit ArrayFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace holdfast::format
