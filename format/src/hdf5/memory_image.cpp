#include "hdf5/memory_image.h"

#include <algorithm>

#include "hdf5/image_bytes.h"

namespace holdfast::format {

bool FixedImage::read(std::uint64_t address, std::span<std::byte> out) const {
  return read_bytes(bytes_, address, out);
}

haddr_t GrowingImage::allocate(H5FD_mem_t, std::uint64_t bytes, haddr_t& end) {
  const haddr_t address = end;
  end += bytes;
  return address;
}

bool GrowingImage::read(std::uint64_t address, std::span<std::byte> out) const {
  return read_bytes(bytes_, address, out);
}

bool GrowingImage::write(std::uint64_t address, std::span<const std::byte> in) {
  write_bytes(bytes_, address, in);
  return true;
}

// HDF5 may give space back before it closes the file. That space does not belong to the file.
bool GrowingImage::finish(haddr_t end) {
  bytes_.resize(end);
  return true;
}

}  // namespace holdfast::format
