#pragma once

// What HDF5 takes for a file. A file driver of ours forwards every access to an object, so the library
// never touches the operating system.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hdf5/hdf5_session.h"

namespace holdfast::format {

// An exception from read(), write() or finish() reaches HDF5 as a failure, since no exception may pass
// through C.
class DriverImage {
 public:
  virtual ~DriverImage() = default;

  // Returns the address of new space of this size and kind, or HADDR_UNDEF to refuse. `end` is the end of
  // all space that HDF5 has; it grows with the allocation.
  virtual haddr_t allocate(H5FD_mem_t kind, std::uint64_t bytes, haddr_t& end) = 0;
  virtual std::uint64_t size_bytes(haddr_t end) const = 0;
  // Both return false for bytes that do not exist.
  virtual bool read(std::uint64_t address, std::span<std::byte> out) const = 0;
  virtual bool write(std::uint64_t address, std::span<const std::byte> in) = 0;
  // Called when the file is closed.
  virtual bool finish(haddr_t end) = 0;
};

// For images in memory. Reads `bytes` from `offset` on; false unless all bytes of `out` exist.
inline bool read_bytes(std::span<const std::byte> bytes, std::uint64_t offset, std::span<std::byte> out) {
  if (offset > bytes.size() || out.size() > bytes.size() - offset) return false;
  std::copy_n(bytes.data() + offset, out.size(), out.begin());
  return true;
}

// The vector grows when something is written after its end.
inline void write_bytes(std::vector<std::byte>& bytes, std::uint64_t offset, std::span<const std::byte> in) {
  if (bytes.size() < offset + in.size()) bytes.resize(offset + in.size());
  std::copy(in.begin(), in.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

// The access list for H5Fcreate and H5Fopen, with the format bounds of what we write. HDF5 ignores the
// name of such a file. `image` must outlive the file.
Handle driver_access_list(const Checker& check, DriverImage& image);

}  // namespace holdfast::format
