#pragma once

// Lets HDF5 describe a file whose data is already written. When HDF5 allocates space for data, it gets the
// offset that the data has; what it writes there is dropped. HDF5's own structures are kept in memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hdf5/driver_image.h"

namespace holdfast::format {

class ViewImage : public DriverImage {
 public:
  // HDF5's own structures, except the superblock, begin at `structures_offset`.
  explicit ViewImage(std::uint64_t structures_offset) : structures_offset_(structures_offset) {}

  // Where the next data that HDF5 allocates is. An allocation of another size fails.
  void expect_data(std::uint64_t offset, std::uint64_t bytes);
  bool is_data_expected() const { return data_bytes_ != 0; }

  const std::vector<std::byte>& superblock() const { return superblock_; }  // begins at kUserBlockBytes
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
