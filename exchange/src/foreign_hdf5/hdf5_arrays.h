#pragma once

// The content of any HDF5 file as arrays and metadata; see exchange/hdf5.h.

#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_set.h"

namespace holdfast::format {

ArraySet hdf5_arrays(Hdf5Tree tree);

}  // namespace holdfast::format
