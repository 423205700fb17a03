#pragma once

// Reads pieces from a file into arrays, in several threads, and checks every byte against its digest.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "container/index.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_info.h"

namespace holdfast::format {

struct ReadTarget {
  const IndexedArray* array;
  std::span<std::byte> out;  // of exactly the array's size
};

struct ReadPiecesOptions {
  int threads = 0;
  std::function<void(const ArrayFile::Arrival&)> arrived = {};  // as in ArrayFile::read_into()
};

// Throws Error{invalid_file} that names `path` and the array of the first damaged piece that it finds. A
// piece that is not followed by zeros up to the next multiple of kAlignment is damaged too. The content
// of `out` is undefined then.
void read_pieces(File& file, const std::string& path, std::span<const ReadTarget> targets,
                 const ReadPiecesOptions& options);

struct ReadPartsOptions {
  int threads = 0;
  std::size_t part_bytes = 0;  // the most that `take` gets at once, or one piece if that is larger
  std::function<void(std::span<const std::byte>)> take = {};
};

// The same for one array, from its beginning to its end and part by part.
void read_pieces_in_order(File& file, const std::string& path, const IndexedArray& array,
                          const ReadPartsOptions& options);

struct VerifyOptions {
  int threads = 0;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // as in ArrayFile::verify()
};

// Checks the pieces of all arrays of the index, and each array's own digest. Takes the memory of one piece
// per thread.
void verify_pieces(File& file, const std::string& path, const Index& index, const VerifyOptions& options);

}  // namespace holdfast::format
