#pragma once

// Named arrays and a JSON text in one file: an HDF5 file that any HDF5 tool opens, behind a 512-byte header with the
// digests that make damage impossible to miss. docs/format.md is the specification of the bytes.
//
// It promises that a file stands at its path whole or not at all, that no parser sees a byte before the digest of the
// whole file was checked, and that the same names, metadata and arrays give the same bytes (with one version of HDF5
// and of zstd). It knows nothing of training: what the arrays and the JSON mean is their writer's business.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/dtype.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format {

// The version of the format that is written; no other is read.
inline constexpr std::uint32_t kFormatVersion = 1;

// An array to be written. The bytes belong to the caller.
struct ArrayView {
  std::string name;                  // "model/dense/kernel": UTF-8, 1 to 1024 bytes; '/' separates up to 32 parts
  DType dtype;                       //
  std::vector<std::uint64_t> shape;  // in elements, up to 32 axes; empty for a scalar; an axis may be 0
  std::span<const std::byte> bytes;  // row-major and little-endian, without padding
};

// What a file says of one of its arrays.
struct ArrayInfo {
  std::string name;
  DType dtype;
  std::vector<std::uint64_t> shape;
  Digest digest;               // of the bytes that read() returns
  std::uint64_t stored_bytes;  // what the array's elements take in the file, compressed
};

// The bytes that an array's elements take in memory.
std::uint64_t size_bytes(const ArrayInfo& array);

struct WriteOptions {
  int zstd_level = 1;  // as zstd counts them: negative is faster, up to 22 is smaller
};

// Writes `path` whole or not at all, and makes it durable: a temporary name beside it (temporary_files below), digests,
// fsync, rename, fsync of the folder. The order of `arrays` does not matter. Returns the file's digest.
//
// Blocks until the disk has it. Takes memory for the whole compressed file. May be called from several threads at once;
// they take turns while the file is composed, and write in parallel.
//
// Throws Error{invalid_argument} for names, shapes, sizes or metadata that the format cannot hold (metadata must be
// JSON), and what the file system threw. The temporary file is then removed, if that is possible, and whatever stood at
// `path` is untouched. Only if the last act fails, the fsync of the folder, does the whole file stand at `path`
// already.
Digest write_array_file(FileSystem& files, const std::string& path, std::string_view metadata_json,
                        std::span<const ArrayView> arrays, const WriteOptions& options = {});

// A file that was found whole. Holds its compressed bytes in memory, so that what is parsed is what was checked,
// whatever happens to the file meanwhile. All functions may be called from several threads at once.
class ArrayFile {
 public:
  // Reads the file and checks the digest of all of it before anything else looks at it. Throws Error{not_found,
  // input_output}, invalid_file for one that is damaged or no array file at all, and unsupported for a newer version of
  // the format, which is no damage.
  static ArrayFile open(FileSystem& files, const std::string& path);

  ~ArrayFile();
  ArrayFile(ArrayFile&&) noexcept;
  ArrayFile& operator=(ArrayFile&&) noexcept;

  // JSON, byte for byte as it was written.
  const std::string& metadata() const;
  // Sorted by name (as bytes).
  std::span<const ArrayInfo> arrays() const;
  // Null when there is none of that name.
  const ArrayInfo* find(std::string_view name) const;

  // The array's elements, row-major and little-endian. Their digest is checked. Throws Error{not_found}, and
  // invalid_file for an array that is not what its digest says, which in a whole file only a faulty writer can cause.
  std::vector<std::byte> read(std::string_view name) const;
  // `out` must have exactly the array's size, else Error{invalid_argument}. Its content is undefined after an error.
  void read_into(std::string_view name, std::span<std::byte> out) const;

  // Of all bytes after the header.
  Digest file_digest() const;
  std::uint64_t file_bytes() const;

 private:
  struct State;
  explicit ArrayFile(std::unique_ptr<State> state);
  const ArrayInfo& get(std::string_view name) const;

  std::unique_ptr<State> state_;
};

// Removes what writers that died left in `folder`, and only names of exactly their form: NAME.tmp-XXXXXXXXXXXXXXXX,
// with 16 lower-case hexadecimal digits. Returns the names removed, sorted. Call it only while nobody writes there.
std::vector<std::string> remove_temporary_files(FileSystem& files, const std::string& folder);

}  // namespace holdfast::format
