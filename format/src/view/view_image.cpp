#include "view/view_image.h"

#include <algorithm>

#include "container/index.h"
#include "container/user_block.h"
#include "hdf5/image_bytes.h"

namespace holdfast::format {

void ViewImage::expect_data(std::uint64_t offset, std::uint64_t bytes) {
  data_offset_ = offset;
  data_bytes_ = bytes;
}

haddr_t ViewImage::allocate(H5FD_mem_t kind, std::uint64_t bytes, haddr_t& end) {
  if (kind == H5FD_MEM_DRAW) return allocate_data(bytes);
  if (kind == H5FD_MEM_SUPER) {
    end = std::max<haddr_t>(end, kUserBlockBytes + bytes);
    return kUserBlockBytes;
  }
  const haddr_t address = std::max<haddr_t>(end, structures_offset_);
  end = address + bytes;
  return address;
}

haddr_t ViewImage::allocate_data(std::uint64_t bytes) {
  if (data_bytes_ == 0 || bytes != data_bytes_) return HADDR_UNDEF;
  data_bytes_ = 0;
  return data_offset_;
}

// HDF5 reads back structures that left its cache.
bool ViewImage::read(std::uint64_t address, std::span<std::byte> out) const {
  return address >= structures_offset_ && read_bytes(structures_, address - structures_offset_, out);
}

bool ViewImage::write(std::uint64_t address, std::span<const std::byte> in) {
  if (address >= structures_offset_) {
    write_bytes(structures_, address - structures_offset_, in);
    return true;
  }
  // Data is dropped: it is in the file already.
  if (address >= kDataOffset) return true;
  if (address < kUserBlockBytes || address + in.size() > kDataOffset) return false;
  write_bytes(superblock_, address - kUserBlockBytes, in);
  return true;
}

// Space that HDF5 allocated and never wrote to belongs to the file too.
bool ViewImage::finish(haddr_t end) {
  if (end >= structures_offset_) structures_.resize(end - structures_offset_);
  return true;
}

}  // namespace holdfast::format
