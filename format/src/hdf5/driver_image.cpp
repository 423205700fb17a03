// A file driver for HDF5 that forwards every access to a DriverImage. HDF5 is C: an exception must not pass
// through it, so each callback turns one into HDF5's failure value. docs/decisions/savepoint-file.md

#include "hdf5/driver_image.h"

#include <limits>
#include <new>
#include <type_traits>

namespace holdfast::format {
namespace {

struct DriverFile {
  H5FD_t base;  // must be first: HDF5 has a pointer to it and passes that to the driver
  DriverImage* image;
  haddr_t end;  // of the space that HDF5 has allocated
};
static_assert(std::is_standard_layout_v<DriverFile>, "a pointer to the whole is a pointer to its first member");

// HDF5 gives back the pointer that driver_open() returned.
DriverFile& driver_file(H5FD_t* file) {
  return *reinterpret_cast<DriverFile*>(file);
}
const DriverFile& driver_file(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file);
}

template <typename Work>
bool succeeds(const Work& work) {
  try {
    return work();
  } catch (const std::exception&) {
    return false;
  }
}

// The access list carries a pointer to the image.
H5FD_t* driver_open(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* image = static_cast<DriverImage* const*>(H5Pget_driver_info(access_list));
  auto* file = image == nullptr ? nullptr : new (std::nothrow) DriverFile{.base = {}, .image = *image, .end = 0};
  return file == nullptr ? nullptr : &file->base;
}

herr_t driver_close(H5FD_t* file) {
  delete &driver_file(file);
  return 0;
}

herr_t driver_set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  driver_file(file).end = address;
  return 0;
}

// The image decides where space is: this is how a view describes data that is already written.
// It only computes an address, and throws nothing, so no guard is needed here.
haddr_t driver_allocate(H5FD_t* base, H5FD_mem_t kind, hid_t, hsize_t bytes) {
  DriverFile& file = driver_file(base);
  return file.image->allocate(kind, bytes, file.end);
}

herr_t driver_read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* out) {
  const std::span<std::byte> bytes(static_cast<std::byte*>(out), size);
  return succeeds([&] { return driver_file(base).image->read(address, bytes); }) ? 0 : -1;
}

herr_t driver_write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* in) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(in), size);
  return succeeds([&] { return driver_file(base).image->write(address, bytes); }) ? 0 : -1;
}

// HDF5 truncates a file to its final size when it closes it.
herr_t driver_truncate(H5FD_t* base, hid_t, hbool_t) {
  const DriverFile& file = driver_file(base);
  return succeeds([&] { return file.image->finish(file.end); }) ? 0 : -1;
}

hid_t register_driver() {
  H5FD_class_t driver{};
  driver.name = "holdfast";
  driver.maxaddr = std::numeric_limits<std::int64_t>::max();
  // A file that closes with all its objects leaves no handle that refers to the image.
  driver.fc_degree = H5F_CLOSE_STRONG;
  // HDF5 copies the access list, so it gets a pointer to the image and not the image.
  driver.fapl_size = sizeof(DriverImage*);
  driver.open = driver_open;
  driver.close = driver_close;
  driver.alloc = driver_allocate;
  driver.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return driver_file(file).end; };
  driver.set_eoa = driver_set_end_of_addresses;
  driver.get_eof = [](const H5FD_t* base, H5FD_mem_t) {
    const DriverFile& file = driver_file(base);
    return file.image->size_bytes(file.end);
  };
  driver.read = driver_read;
  driver.write = driver_write;
  driver.truncate = driver_truncate;
  return H5FDregister(&driver);
}

}  // namespace

Handle driver_access_list(const Checker& check, DriverImage& image) {
  static const hid_t driver = register_driver();  // the caller holds a Session
  check.succeeded(driver, "HDF5 does not take our file driver");
  Handle list = check.opened(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no file access list");
  DriverImage* pointer = &image;
  check.succeeded(H5Pset_driver(list, driver, &pointer), "HDF5 does not take our file driver");
  set_format_bounds(check, list);
  return list;
}

}  // namespace holdfast::format
