#pragma once

// Reads pieces from a file into arrays, in several threads, and checks every byte on the way.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "container/index.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

struct ReadTarget {
  const IndexedArray* array;
  std::span<std::byte> out;  // of exactly the array's size
};

struct ReadPiecesOptions {
  int threads = 0;
  std::function<void(const ArrayFile::Arrival&)> arrived = {};  // as of ArrayFile::read_into
};

// Throws Error{invalid_file} naming `path` and the array of the first piece found that is damaged, or that has anything
// but zeros behind it; what `out` holds is undefined then.
void read_pieces(File& file, const std::string& path, std::span<const ReadTarget> targets,
                 const ReadPiecesOptions& options);

struct ReadPartsOptions {
  int threads = 0;
  std::size_t part_bytes = 0;  // at most so many at once, or one piece where that is larger
  std::function<void(std::span<const std::byte>)> take = {};
};

// The same of one array, from its begin to its end and part by part.
void read_pieces_in_order(File& file, const std::string& path, const IndexedArray& array,
                          const ReadPartsOptions& options);

struct VerifyOptions {
  int threads = 0;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // as of ArrayFile::verify
};

// Checks the pieces of all arrays of the index, and each array's own digest. Takes memory for a piece a thread.
void verify_pieces(File& file, const std::string& path, const Index& index, const VerifyOptions& options);

}  // namespace holdfast::format
