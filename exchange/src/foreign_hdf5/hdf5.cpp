// The whole file at once; AnyFile reads it array by array.

#include "holdfast/format/exchange/hdf5.h"

#include "foreign_hdf5/hdf5_arrays.h"

namespace holdfast::format {

ArraySet read_hdf5(FileSystem& files, const std::string& path) {
  return hdf5_arrays(read_hdf5_tree(files, path));
}

}  // namespace holdfast::format
