#pragma once

// NumPy's .npz files: a ZIP archive with one .npy member for each array, as numpy.savez writes and numpy.load reads.
// Elements keep their bits, and no pickle is needed. NumPy has no bfloat16. write_npz stores it as ml_dtypes does, as
// voids of two bytes ('<V2'), and read_npz reads such voids as bfloat16. In Python: array.view(ml_dtypes.bfloat16).
//
//   const ArraySet set = read_npz(files, "in.npz");
//   write_npz(files, "out.npz", set.metadata, views(set.arrays));

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Reads the whole archive, with every CRC-32 checked: stored or deflated members, versions 1 to 3 of .npy, either byte
// order, C or Fortran order. Pickles are never loaded. Throws Error{invalid_file} for damaged or hostile content,
// Error{unsupported} for types that Holdfast lacks (objects, text, complex numbers), and what the file system threw.
ArraySet read_npz(FileSystem& files, const std::string& path);

// The same for bytes in memory; `name` stands for the path in errors.
ArraySet parse_npz(std::span<const std::byte> bytes, const std::string& name);

// Writes an uncompressed archive: complete or not at all, durable on return. Equal arguments give equal bytes, in any
// order of `arrays`. Metadata other than "{}" becomes the member "holdfast.metadata.json". Throws
// Error{invalid_argument} for names that an archive cannot hold ("..", "a//b"), for bytes that do not fit their shape,
// and for metadata that is not JSON.
void write_npz(FileSystem& files, const std::string& path, std::string_view metadata_json,
               std::span<const ArrayView> arrays);

}  // namespace holdfast::format
