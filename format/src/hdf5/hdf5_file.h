#pragma once

// The only place that knows HDF5's library. HDF5 never touches the operating system here: it composes files in memory
// and parses them from memory, through a file driver of ours.
//
// HDF5 has state of its own for the whole process and is thread-safe in some builds only: everything here holds one
// lock while it is inside HDF5. Plugins are never loaded, so that no file makes this process run foreign code, and
// chunks are encoded and decoded by chunk.h rather than by HDF5's filters, whose bounds HDF5 1.10 does not check.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/format/array_file.h"
#include "shape_bytes.h"

namespace holdfast::format {

// The registered number of zstd among HDF5's filters.
inline constexpr int kZstdFilter = 32015;

// The deepest nesting of groups that is written or read.
inline constexpr std::size_t kMaxNameParts = 32;
inline constexpr std::size_t kMaxNameBytes = 1024;

// The dataset that holds the metadata; no array may have this name.
inline constexpr std::string_view kMetadataName = "metadata";

// Composes the whole file, its first kUserBlockBytes zero. `arrays` are sorted by name and fit the format: the caller
// has checked them. `path` is named in errors.
std::vector<std::byte> compose_hdf5(const std::string& path, std::string_view metadata_json,
                                    std::span<const ArrayView> arrays, const WriteOptions& options);

// A parsed file. All functions may be called from several threads at once.
class Hdf5Reader {
 public:
  // Lists the file's content and checks that it is what the format allows, so that no array can claim more than the
  // file could hold. Throws Error{invalid_file}.
  Hdf5Reader(std::string path, std::vector<std::byte> bytes);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  const std::string& metadata() const;
  const std::vector<ArrayInfo>& arrays() const;
  // `out` has the array's size. The array's digest is left to the caller.
  void read(const ArrayInfo& array, std::span<std::byte> out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::format
