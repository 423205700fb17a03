#pragma once

// HDF5 files of programs other than Holdfast and Keras, such as h5py: each dataset is an array, named by its path.
//
// To give such programs a file, write one of Holdfast's (array_file.h, Compression::none): that is HDF5, too.

#include <string>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// The arrays are sorted by name. The metadata is {"kind": "hdf5"} with "texts", the datasets that are one string by
// path, and "attributes", by path (the root's is "") and name: strings, lists of strings, and numbers as lists in
// row-major order, where infinities and NaNs are null. Each of the two is left out where it would be empty.
//
// The file is parsed in a locked-in process, and only when its structure is sound. Throws Error{invalid_file} for
// what is damaged or hostile, and for what has no place in an array set: references, compounds, arrays of strings,
// links to elsewhere, filters but shuffle, deflate, fletcher32 and zstd, naming the object; and what the file system
// threw.
ArraySet read_hdf5(FileSystem& files, const std::string& path);

}  // namespace holdfast::format
