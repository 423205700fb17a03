#pragma once

// A file driver under which HDF5 lays out a file whose data is already written: it hands out the places that the data
// has, drops what HDF5 writes there, and keeps HDF5's own structures in memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hdf5/hdf5_session.h"

namespace holdfast::format {

struct ViewImage {
  std::uint64_t structures_offset = 0;  // from which HDF5's own structures lie, but for the superblock
  std::vector<std::byte> superblock;    // from kUserBlockBytes on
  std::vector<std::byte> structures;    //
  std::uint64_t next_data_offset = 0;   // the place for the next data that HDF5 allocates
  std::uint64_t next_data_bytes = 0;    // 0 when none is expected
};

// The access list for H5Fcreate. `image` must outlive the file.
Handle view_access_list(const Checker& check, ViewImage& image);

}  // namespace holdfast::format
