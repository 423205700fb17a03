#pragma once

// HDF5's own structures for a file whose pieces have their offsets already: what h5py, h5dump and other
// programs read. Holdfast's reader does not need them.

#include <cstddef>
#include <string>
#include <vector>

#include "container/index.h"

namespace holdfast::format {

// The registered number of zstd among HDF5's filters.
inline constexpr int kZstdFilter = 32015;

struct Hdf5View {
  std::vector<std::byte> superblock;  // begins at kUserBlockBytes and ends before kDataOffset
  std::vector<std::byte> structures;  // begins at index.hdf5_offset
};

// Composes both in memory. `index` has everything except hdf5_bytes and structure; its names and shapes
// were checked. `zstd_level` is the level that the file states for its zstd filter. `path` is named in
// errors. Throws Error{out_of_memory}. Waits while another thread holds a Session.
Hdf5View compose_view(const std::string& path, const Index& index, int zstd_level);

}  // namespace holdfast::format
