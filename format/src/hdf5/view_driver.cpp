#include "hdf5/view_driver.h"

#include <algorithm>
#include <limits>
#include <new>
#include <span>
#include <type_traits>

#include "index.h"
#include "user_block.h"

namespace holdfast::format {
namespace {

struct ViewFile {
  H5FD_t base;  // first: HDF5 takes the whole for its own part
  ViewImage* image;
  haddr_t end_of_addresses;  // how far HDF5 has handed out space
};
static_assert(std::is_standard_layout_v<ViewFile>, "a pointer to the whole is a pointer to its first member");

ViewFile& view_file(H5FD_t* file) {
  return *reinterpret_cast<ViewFile*>(file);
}
const ViewFile& view_file(const H5FD_t* file) {
  return *reinterpret_cast<const ViewFile*>(file);
}

H5FD_t* driver_open(const char*, unsigned, hid_t access_list, haddr_t) {
  const auto* image = static_cast<ViewImage* const*>(H5Pget_driver_info(access_list));
  auto* file =
      image == nullptr ? nullptr : new (std::nothrow) ViewFile{.base = {}, .image = *image, .end_of_addresses = 0};
  return file == nullptr ? nullptr : &file->base;
}

herr_t driver_close(H5FD_t* file) {
  delete &view_file(file);
  return 0;
}

haddr_t driver_end_of_addresses(const H5FD_t* file, H5FD_mem_t) {
  return view_file(file).end_of_addresses;
}

herr_t driver_set_end_of_addresses(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  view_file(file).end_of_addresses = address;
  return 0;
}

haddr_t driver_end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return view_file(file).end_of_addresses;
}

haddr_t allocate_data(ViewImage& image, hsize_t size) {
  if (image.next_data_bytes == 0 || size != image.next_data_bytes) return HADDR_UNDEF;
  image.next_data_bytes = 0;
  return image.next_data_offset;
}

haddr_t driver_allocate(H5FD_t* base, H5FD_mem_t type, hid_t, hsize_t size) {
  ViewFile& file = view_file(base);
  if (type == H5FD_MEM_DRAW) return allocate_data(*file.image, size);
  if (type == H5FD_MEM_SUPER) {
    file.end_of_addresses = std::max<haddr_t>(file.end_of_addresses, kUserBlockBytes + size);
    return kUserBlockBytes;
  }
  const haddr_t address = std::max<haddr_t>(file.end_of_addresses, file.image->structures_offset);
  file.end_of_addresses = address + size;
  return address;
}

// Structures that left HDF5's cache come back.
herr_t driver_read(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* out) {
  const ViewImage& image = *view_file(base).image;
  if (address < image.structures_offset || address - image.structures_offset > image.structures.size()) return -1;
  const auto bytes = std::span(image.structures).subspan(address - image.structures_offset);
  if (size > bytes.size()) return -1;
  std::copy_n(bytes.data(), size, static_cast<std::byte*>(out));
  return 0;
}

bool store(std::vector<std::byte>& bytes, std::uint64_t offset, const void* in, std::size_t size) {
  try {
    if (bytes.size() < offset + size) bytes.resize(offset + size);
  } catch (const std::exception&) {
    return false;  // HDF5 is C: no exception may pass through it
  }
  std::copy_n(static_cast<const std::byte*>(in), size, bytes.data() + offset);
  return true;
}

herr_t driver_write(H5FD_t* base, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* in) {
  ViewImage& image = *view_file(base).image;
  if (address >= image.structures_offset) {
    return store(image.structures, address - image.structures_offset, in, size) ? 0 : -1;
  }
  if (address >= kDataOffset) return 0;
  if (address < kUserBlockBytes || address + size > kDataOffset) return -1;
  return store(image.superblock, address - kUserBlockBytes, in, size) ? 0 : -1;
}

// Called when a file is closed: space that HDF5 handed out and never wrote to belongs to the file, too.
herr_t driver_truncate(H5FD_t* base, hid_t, hbool_t) {
  ViewFile& file = view_file(base);
  if (file.end_of_addresses < file.image->structures_offset) return 0;
  try {
    file.image->structures.resize(file.end_of_addresses - file.image->structures_offset);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

hid_t register_driver() {
  H5FD_class_t driver{};
  driver.name = "holdfast_view";
  driver.maxaddr = std::numeric_limits<std::int64_t>::max();
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(ViewImage*);
  driver.open = driver_open;
  driver.close = driver_close;
  driver.alloc = driver_allocate;
  driver.get_eoa = driver_end_of_addresses;
  driver.set_eoa = driver_set_end_of_addresses;
  driver.get_eof = driver_end_of_file;
  driver.read = driver_read;
  driver.write = driver_write;
  driver.truncate = driver_truncate;
  return H5FDregister(&driver);
}

}  // namespace

Handle view_access_list(const Checker& check, ViewImage& image) {
  static const hid_t driver = register_driver();  // guarded by the session
  check.succeeded(driver, "HDF5 does not take our file driver");
  Handle list = check.opened(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "no file access list");
  ViewImage* pointer = &image;
  check.succeeded(H5Pset_driver(list, driver, &pointer), "HDF5 does not take our file driver");
  set_format_bounds(check, list);
  return list;
}

}  // namespace holdfast::format
