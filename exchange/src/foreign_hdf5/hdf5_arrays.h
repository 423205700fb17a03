#pragma once

// What an HDF5 file of anybody holds, as arrays and metadata; see exchange/hdf5.h.

#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

ArraySet hdf5_arrays(Hdf5Tree tree);

}  // namespace holdfast::format
