// Leads HDF5, through a file driver of ours, to describe datasets that are written already. Several threads
// can so write pieces at offsets that they choose themselves, and HDF5's parser never runs on a file of
// unknown origin. The price: a test must hold both descriptions of a file equal, for every kind of file
// that we write. See docs/decisions/savepoint-file.md.

#include "view/view_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "container/chunk.h"
#include "container/names.h"
#include "container/user_block.h"
#include "hdf5/driver_image.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// Lets HDF5 describe a file whose data is already written. When HDF5 allocates space for data, it gets the offset that
// the data has; what it writes there is dropped. HDF5's own structures are kept in memory.
class ViewImage : public DriverImage {
 public:
  // HDF5's own structures, except the superblock, begin at `structures_offset`.
  explicit ViewImage(std::uint64_t structures_offset) : structures_offset_(structures_offset) {}

  // Where the next data that HDF5 allocates is. An allocation of another size fails.
  void expect_data(std::uint64_t offset, std::uint64_t bytes) {
    data_offset_ = offset;
    data_bytes_ = bytes;
  }
  bool is_data_expected() const { return data_bytes_ != 0; }

  const std::vector<std::byte>& superblock() const { return superblock_; }  // begins at kUserBlockBytes
  const std::vector<std::byte>& structures() const { return structures_; }

  haddr_t allocate(H5FD_mem_t kind, std::uint64_t bytes, haddr_t& end) override {
    if (kind == H5FD_MEM_DRAW) return bytes == data_bytes_ && is_data_expected() ? take_data() : HADDR_UNDEF;
    if (kind == H5FD_MEM_SUPER) {
      end = std::max<haddr_t>(end, kUserBlockBytes + bytes);
      return kUserBlockBytes;
    }
    const haddr_t address = std::max<haddr_t>(end, structures_offset_);
    end = address + bytes;
    return address;
  }

  std::uint64_t size_bytes(haddr_t end) const override { return end; }

  // HDF5 reads back structures that left its cache.
  bool read(std::uint64_t address, std::span<std::byte> out) const override {
    return address >= structures_offset_ && read_bytes(structures_, address - structures_offset_, out);
  }

  bool write(std::uint64_t address, std::span<const std::byte> in) override {
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
  bool finish(haddr_t end) override {
    if (end >= structures_offset_) structures_.resize(end - structures_offset_);
    return true;
  }

 private:
  haddr_t take_data() {
    data_bytes_ = 0;
    return data_offset_;
  }

  const std::uint64_t structures_offset_;
  std::vector<std::byte> superblock_;
  std::vector<std::byte> structures_;
  std::uint64_t data_offset_ = 0;
  std::uint64_t data_bytes_ = 0;  // 0 when none is expected
};

// Types that HDF5 does not have are stored as another type, and an attribute names the real one.
bool needs_dtype_attribute(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::boolean;
}

// Padded with zeros and not terminated, so that the length is that of the text.
Handle string_type(const Checker& check, std::size_t bytes) {
  Handle type = check.opened(H5Tcopy(H5T_C_S1), H5Tclose, "no string type");
  check.succeeded(H5Tset_size(type, bytes), "no string type");
  check.succeeded(H5Tset_cset(type, H5T_CSET_UTF8), "no string type");
  check.succeeded(H5Tset_strpad(type, H5T_STR_NULLPAD), "no string type");
  return type;
}

class ViewWriter {
 public:
  // `image` must outlive it.
  ViewWriter(const std::string& path, ViewImage& image, int zstd_level)
      : check_(Checker::of_writing(path)),
        image_(image),
        zstd_level_(static_cast<unsigned>(zstd_level)),
        link_list_(utf8_link_list(check_)),
        file_(create_file()) {}

  void add_metadata(const IndexedArray& metadata) {
    const Handle type = string_type(check_, static_cast<std::size_t>(metadata.info.shape[0]));
    const Handle space = check_.opened(H5Screate(H5S_SCALAR), H5Sclose, "no space for the metadata");
    create_contiguous(metadata, type, space);
  }

  void add_array(const IndexedArray& array) {
    create_groups_of(array.info.name);
    const Handle type = element_type(check_, array.info.dtype);
    const Handle space = create_space(array.info);
    const Handle dataset = array.info.storage == Storage::contiguous ? create_contiguous(array, type, space)
                                                                     : create_chunked(array, type, space);
    add_attribute(dataset, "digest", array.info.digest.hex());
    if (needs_dtype_attribute(array.info.dtype)) add_attribute(dataset, "dtype", std::string(name(array.info.dtype)));
  }

  void finish() { check_.succeeded(file_.reset(), "cannot close it"); }

 private:
  Handle create_file() const {
    const Handle creation = untimed_list(check_, H5P_FILE_CREATE);
    check_.succeeded(H5Pset_userblock(creation, kUserBlockBytes), "cannot reserve the header");
    const Handle access = driver_access_list(check_, image_);
    return check_.opened(H5Fcreate("holdfast", H5F_ACC_TRUNC, creation, access), H5Fclose, "HDF5 cannot create a file");
  }

  // HDF5 could create missing groups itself, but not with a property list of ours, which leaves out times.
  void create_groups_of(const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string group = name.substr(0, slash);
      if (!groups_.insert(group).second) continue;
      check_.opened(H5Gcreate2(file_, group.c_str(), link_list_, untimed_list(check_, H5P_GROUP_CREATE), H5P_DEFAULT),
                    H5Gclose, fmt::format("cannot create group {}", group));
    }
  }

  Handle create_space(const ArrayInfo& info) const {
    const std::vector<hsize_t> extents(info.shape.begin(), info.shape.end());
    const hid_t id = extents.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    return check_.opened(id, H5Sclose, fmt::format("no space for array {}", info.name));
  }

  Handle create_dataset(const std::string& name, hid_t type, hid_t space, hid_t creation) const {
    return check_.opened(H5Dcreate2(file_, name.c_str(), type, space, link_list_, creation, H5P_DEFAULT), H5Dclose,
                         fmt::format("cannot create dataset {}", name));
  }

  // Without this check, a change in how HDF5 allocates could describe data that is elsewhere.
  void require_announced_was_taken(const std::string& name) const {
    check_.require(!image_.is_data_expected(), fmt::format("HDF5 did not allocate space for array {}", name));
  }

  Handle create_contiguous(const IndexedArray& array, hid_t type, hid_t space) const {
    const Handle creation = untimed_list(check_, H5P_DATASET_CREATE);
    check_.succeeded(H5Pset_layout(creation, H5D_CONTIGUOUS), "no contiguous layout");
    // HDF5 then allocates the data while it creates the dataset, so the expected offset is taken below.
    check_.succeeded(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), "no early allocation");
    check_.succeeded(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), "cannot leave out fill values");
    image_.expect_data(array.offset, array.info.stored_bytes);
    Handle dataset = create_dataset(array.info.name, type, space, creation);
    require_announced_was_taken(array.info.name);
    return dataset;
  }

  Handle create_chunked(const IndexedArray& array, hid_t type, hid_t space) const {
    const ChunkGrid grid(array.info.shape, size_bytes(array.info.dtype));
    const std::vector<hsize_t> chunk(grid.chunk_shape().begin(), grid.chunk_shape().end());
    const Handle creation = untimed_list(check_, H5P_DATASET_CREATE);
    check_.succeeded(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), "no chunked layout");
    check_.succeeded(H5Pset_shuffle(creation), "no shuffle filter");
    // Optional, since this process does not register the filter. HDF5 then stores our chunks as they are.
    check_.succeeded(H5Pset_filter(creation, kZstdFilter, H5Z_FLAG_OPTIONAL, 1, &zstd_level_), "no zstd filter");
    Handle dataset = create_dataset(array.info.name, type, space, creation);
    add_chunks(array, grid, dataset);
    return dataset;
  }

  // The driver drops what HDF5 writes as data, so any byte will do: HDF5 only passes a pointer on.
  void add_chunks(const IndexedArray& array, const ChunkGrid& grid, hid_t dataset) const {
    static constexpr std::byte kNothing{};
    std::uint64_t offset = array.offset;
    for (std::uint64_t i = 0; i < grid.count(); ++i) {
      const ChunkGrid::Piece piece = grid.piece(i);
      const std::vector<hsize_t> position(piece.offset.begin(), piece.offset.end());
      const std::uint32_t bytes = array.pieces[i].stored_bytes;
      image_.expect_data(offset, bytes);
      check_.succeeded(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, position.data(), bytes, &kNothing),
                       fmt::format("cannot list the chunks of array {}", array.info.name));
      require_announced_was_taken(array.info.name);
      offset = aligned(offset + bytes);
    }
  }

  void add_attribute(hid_t dataset, const char* name, const std::string& text) const {
    const Handle type = string_type(check_, text.size());
    const Handle space = check_.opened(H5Screate(H5S_SCALAR), H5Sclose, "no space for an attribute");
    const Handle attribute = check_.opened(H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                                           std::string("cannot create attribute ") + name);
    check_.succeeded(H5Awrite(attribute, type, text.data()), std::string("cannot write attribute ") + name);
  }

  Checker check_;
  ViewImage& image_;
  unsigned zstd_level_;
  Handle link_list_;
  Handle file_;
  std::set<std::string> groups_;  // that exist
};

}  // namespace

Hdf5View compose_view(const std::string& path, const Index& index, int zstd_level) {
  const Session session;
  ViewImage image(index.hdf5_offset);
  ViewWriter writer(path, image, zstd_level);
  writer.add_metadata(index.metadata);
  for (const IndexedArray& array : index.arrays) writer.add_array(array);
  writer.finish();
  return {image.superblock(), image.structures()};
}

}  // namespace holdfast::format
