#pragma once

// HDF5's own structures for a file whose pieces have their places already: what h5py, h5dump and everyone else sees.
// Holdfast's reader does not need them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "container/index.h"

namespace holdfast::format {

// The registered number of zstd among HDF5's filters.
inline constexpr int kZstdFilter = 32015;

struct Hdf5View {
  std::vector<std::byte> superblock;  // for kUserBlockBytes, at most up to kDataOffset
  std::vector<std::byte> structures;  // for index.hdf5_offset
};

// `index` has everything but hdf5_bytes and structure; its names and shapes were checked. `zstd_level` is what the file
// says of its zstd filter. `path` is named in errors. Throws Error{out_of_memory}.
Hdf5View compose_view(const std::string& path, const Index& index, int zstd_level);

}  // namespace holdfast::format
