#pragma once

// HDF5 files that are blocks of memory.

#include <cstddef>
#include <span>
#include <utility>

#include "hdf5/driver_image.h"

namespace holdfast::format {

// A file that is only read. `bytes` must outlive the object.
class FixedImage : public DriverImage {
 public:
  explicit FixedImage(std::span<const std::byte> bytes) : bytes_(bytes) {}

  haddr_t allocate(H5FD_mem_t, std::uint64_t, haddr_t&) override { return HADDR_UNDEF; }
  std::uint64_t size_bytes(haddr_t) const override { return bytes_.size(); }
  bool read(std::uint64_t address, std::span<std::byte> out) const override { return read_bytes(bytes_, address, out); }
  bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  bool finish(haddr_t) override { return true; }

 private:
  std::span<const std::byte> bytes_;
};

// A file that is being written. It is complete when HDF5 has closed it.
class GrowingImage : public DriverImage {
 public:
  // Reserves memory for `capacity` bytes. The file may become larger.
  explicit GrowingImage(std::size_t capacity) { bytes_.reserve(capacity); }

  std::vector<std::byte> take_bytes() { return std::move(bytes_); }

  haddr_t allocate(H5FD_mem_t, std::uint64_t bytes, haddr_t& end) override { return std::exchange(end, end + bytes); }
  std::uint64_t size_bytes(haddr_t) const override { return bytes_.size(); }
  bool read(std::uint64_t address, std::span<std::byte> out) const override { return read_bytes(bytes_, address, out); }
  bool write(std::uint64_t address, std::span<const std::byte> in) override {
    write_bytes(bytes_, address, in);
    return true;
  }
  // HDF5 may give space back before it closes the file. That space does not belong to the file.
  bool finish(haddr_t end) override {
    bytes_.resize(end);
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace holdfast::format
