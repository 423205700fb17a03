#pragma once

// What every way of writing an array file has in common: the check of the arguments before the pieces,
// and the structure around the pieces after them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "container/index.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// The caller's arrays, checked and in the order of the file. Valid as long as the caller's memory.
struct ArrayContent {
  // Throws Error{invalid_argument} for what the format cannot hold, naming `path`.
  ArrayContent(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays,
               const WriteOptions& options);

  ArrayView metadata;
  std::vector<ArrayView> sorted;
};

// Writes everything except the pieces, whose offsets are in `index`. The header is written last: no reader
// accepts a file without it. Returns the file's digest.
Digest write_structure(File& file, const std::string& path, Index index, const WriteOptions& options);

}  // namespace holdfast::format
