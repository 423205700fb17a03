#pragma once

// HDF5 files of programs such as h5py: each dataset becomes an array, named by its path. The file is parsed in a
// sandboxed process. To write a file for such programs, use array_file.h with Compression::none.
//
//   const ArraySet set = read_hdf5(posix_file_system(), "data.h5");

#include <string>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Arrays are sorted by name. The metadata is {"kind": "hdf5", "texts": {path: string}, "attributes": {path: {...}}},
// without a member that would be empty. The root's path is "". Attributes are strings, lists of strings, and numbers as
// lists in row-major order, with null for infinities and NaNs.
// Throws Error{invalid_file}, naming the object, for damaged content and for what an ArraySet cannot hold: references,
// compounds, arrays of strings, soft and external links, unknown filters; and what the file system threw.
ArraySet read_hdf5(FileSystem& files, const std::string& path);

}  // namespace holdfast::format
