#pragma once

// What HDF5 takes for a file: a file driver of ours leads every access to an object, so that the library never touches
// the operating system.

#include <cstddef>
#include <cstdint>
#include <span>

#include "hdf5/hdf5_session.h"

namespace holdfast::format {

// What these throw reaches HDF5 as a failure: it is C, and no exception may pass through it.
class DriverImage {
 public:
  virtual ~DriverImage() = default;

  // The place of so many bytes of this kind, HADDR_UNDEF for none. `end`, behind all that HDF5 was given, grows with
  // it.
  virtual haddr_t allocate(H5FD_mem_t kind, std::uint64_t bytes, haddr_t& end) = 0;
  virtual std::uint64_t size_bytes(haddr_t end) const = 0;
  // False: not there.
  virtual bool read(std::uint64_t address, std::span<std::byte> out) const = 0;
  virtual bool write(std::uint64_t address, std::span<const std::byte> in) = 0;
  // When the file is closed.
  virtual bool finish(haddr_t end) = 0;
};

// The access list for H5Fcreate and H5Fopen, with the format bounds of what we write. The file's name does not matter.
// `image` must outlive the file.
Handle driver_access_list(const Checker& check, DriverImage& image);

}  // namespace holdfast::format
