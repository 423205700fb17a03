#pragma once

// What every way of writing an array file has in common: the check of what is asked for before, and the structure
// around the pieces behind.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "container/index.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// What the caller gave, checked and in the order of the file. Valid while that is.
struct ArrayContent {
  // Throws Error{invalid_argument} for what the format cannot hold, naming `path`.
  ArrayContent(const std::string& path, std::string_view metadata_json, std::span<const ArrayView> arrays,
               const WriteOptions& options);

  ArrayView metadata;
  std::vector<ArrayView> sorted;
};

// Writes all but the pieces, which `index` has the places of. The header goes last: a file without it is no file yet.
// Returns the file's digest.
Digest write_structure(File& file, const std::string& path, Index index, const WriteOptions& options);

}  // namespace holdfast::format
