#pragma once

// Lets HDF5 lay out a file whose data is already written: hands out the places that the data has, drops what HDF5
// writes there, and keeps HDF5's own structures in memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hdf5/driver_image.h"

namespace holdfast::format {

class ViewImage : public DriverImage {
 public:
  // HDF5's own structures lie from there on, but for the superblock.
  explicit ViewImage(std::uint64_t structures_offset) : structures_offset_(structures_offset) {}

  // The place of the next data that HDF5 allocates.
  void expect_data(std::uint64_t offset, std::uint64_t bytes);
  bool is_data_expected() const { return data_bytes_ != 0; }

  const std::vector<std::byte>& superblock() const { return superblock_; }  // from kUserBlockBytes on
  const std::vector<std::byte>& structures() const { return structures_; }

  haddr_t allocate(H5FD_mem_t kind, std::uint64_t bytes, haddr_t& end) override;
  std::uint64_t size_bytes(haddr_t end) const override { return end; }
  bool read(std::uint64_t address, std::span<std::byte> out) const override;
  bool write(std::uint64_t address, std::span<const std::byte> in) override;
  bool finish(haddr_t end) override;

 private:
  haddr_t allocate_data(std::uint64_t bytes);

  std::uint64_t structures_offset_;
  std::vector<std::byte> superblock_;
  std::vector<std::byte> structures_;
  std::uint64_t data_offset_ = 0;
  std::uint64_t data_bytes_ = 0;  // 0 when none is expected
};

}  // namespace holdfast::format
