#include "hdf5/memory_driver.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>

namespace holdfast::format {
namespace {

struct MemoryFile {
  H5FD_t base;  // first: HDF5 takes the whole for its own part
  MemoryImage image;
  haddr_t end_of_addresses;  // how far HDF5 has handed out space
};
static_assert(std::is_standard_layout_v<MemoryFile>, "a pointer to the whole is a pointer to its first member");

MemoryFile& memory_file(H5FD_t* file) {
  return *reinterpret_cast<MemoryFile*>(file);
}
const MemoryFile& memory_file(const H5FD_t* file) {
  return *reinterpret_cast<const MemoryFile*>(file);
}

std::size_t image_bytes(const MemoryFile& file) {
  return file.image.growing != nullptr ? file.image.growing->size() : file.image.fixed.size();
}

bool resize_image(MemoryFile& file, std::size_t bytes) {
  try {
    file.image.growing->resize(bytes);
    return true;
  } catch (const std::exception&) {
    return false;  // HDF5 is C: no exception may pass through it
  }
}

H5FD_t* driver_open(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* image = static_cast<const MemoryImage*>(H5Pget_driver_info(access_list));
  auto* file =
      image == nullptr ? nullptr : new (std::nothrow) MemoryFile{.base = {}, .image = *image, .end_of_addresses = 0};
  return file == nullptr ? nullptr : &file->base;
}

herr_t driver_close(H5FD_t* file) {
  delete &memory_file(file);
  return 0;
}

haddr_t driver_end_of_addresses(const H5FD_t* file, H5FD_mem_t) {
  return memory_file(file).end_of_addresses;
}

herr_t driver_set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  memory_file(file).end_of_addresses = address;
  return 0;
}

haddr_t driver_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return image_bytes(memory_file(file));
}

herr_t driver_read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* out) {
  const MemoryFile& file = memory_file(base);
  const std::span<const std::byte> bytes = file.image.growing != nullptr ? *file.image.growing : file.image.fixed;
  if (address > bytes.size() || size > bytes.size() - address) return -1;
  std::copy_n(bytes.data() + address, size, static_cast<std::byte*>(out));
  return 0;
}

herr_t driver_write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* in) {
  MemoryFile& file = memory_file(base);
  if (file.image.growing == nullptr) return -1;
  if (address + size > image_bytes(file) && !resize_image(file, address + size)) return -1;
  std::copy_n(static_cast<const std::byte*>(in), size, file.image.growing->data() + address);
  return 0;
}

// Called when a file is closed: what HDF5 did not hand out in the end does not belong to the file.
herr_t driver_truncate(H5FD_t* base, hid_t, hbool_t) {
  MemoryFile& file = memory_file(base);
  if (file.image.growing == nullptr) return 0;
  return resize_image(file, file.end_of_addresses) ? 0 : -1;
}

hid_t register_driver() {
  H5FD_class_t driver{};
  driver.name = "holdfast_memory";
  driver.maxaddr = std::numeric_limits<std::int64_t>::max();
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(MemoryImage);
  driver.open = driver_open;
  driver.close = driver_close;
  driver.get_eoa = driver_end_of_addresses;
  driver.set_eoa = driver_set_end_of_addresses;
  driver.get_eof = driver_end_of_file;
  driver.read = driver_read;
  driver.write = driver_write;
  driver.truncate = driver_truncate;
  return H5FDregister(&driver);
}

}  // namespace

Handle memory_access_list(const Checker& check, const MemoryImage& image) {
  static const hid_t driver = register_driver();  // guarded by the session
  check.succeeded(driver, "HDF5 does not take our file driver");
  Handle list = check.opened(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no file access list");
  check.succeeded(H5Pset_driver(list, driver, &image), "HDF5 does not take our file driver");
  set_format_bounds(check, list);
  return list;
}

}  // namespace holdfast::format
