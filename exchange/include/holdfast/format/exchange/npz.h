#pragma once

// NumPy's .npz files: a ZIP archive with one .npy member for each array.
//
// numpy.savez writes them and numpy.load reads them; ours need no pickle. Elements go over bit for bit, with one thing
// to know: NumPy has no bfloat16. The ml_dtypes package (JAX, Keras) saves its bfloat16 as a void of two bytes, '<V2',
// and so does write_npz; after numpy.load it takes `array.view(ml_dtypes.bfloat16)`. read_npz takes voids of two bytes
// for bfloat16. A JSON text travels as a member "holdfast.metadata.json", which numpy.load gives as bytes; "{}" leaves
// the member out.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Reads the whole archive (stored or deflated members) with every CRC-32 checked; versions 1 to 3 of .npy, both orders
// of bytes and of axes: what comes back is little-endian and row-major. No pickle is ever loaded and no text evaluated.
//
// Throws Error{invalid_file} for a file that is damaged, hostile or no .npz, Error{unsupported} for arrays of objects,
// text, complex numbers and other types that Holdfast lacks, and what the file system threw.
ArraySet read_npz(FileSystem& files, const std::string& path);

// The same of bytes in memory; `name` stands for the path in errors.
ArraySet parse_npz(std::span<const std::byte> bytes, const std::string& name);

// Uncompressed. Whole or not at all, durable on return; the same arguments give the same bytes, in any order of
// `arrays`. Throws Error{invalid_argument} for names that an archive cannot hold ("..", "a//b", not UTF-8, twice
// there), for bytes that do not fit their shape and for metadata that is not JSON.
void write_npz(FileSystem& files, const std::string& path, std::string_view metadata_json,
               std::span<const ArrayView> arrays);

}  // namespace holdfast::format
