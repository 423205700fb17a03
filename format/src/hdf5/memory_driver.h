#pragma once

// A file driver that lets HDF5 work on a block of memory, so that the library never touches the operating system.

#include <cstddef>
#include <span>
#include <vector>

#include "hdf5/hdf5_session.h"

namespace holdfast::format {

// Exactly one of the two is used. What it points to must outlive the file.
struct MemoryImage {
  std::vector<std::byte>* growing = nullptr;  // being written
  std::span<const std::byte> fixed;           // being read
};

// The access list for H5Fcreate and H5Fopen, with the format bounds of what we write. The file's name does not matter.
Handle memory_access_list(const Checker& check, const MemoryImage& image);

}  // namespace holdfast::format
