#include "hdf5/hdf5_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "chunk.h"
#include "hdf5/hdf5_session.h"
#include "hdf5/memory_driver.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "user_block.h"

namespace holdfast::format {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays go between memory and file without conversion");

Checker checker_of_reading(const std::string& path) {
  return {ErrorCode::invalid_file, path + " is undamaged but not what the format allows: ",
          "; write it again with Holdfast, or use another file"};
}

// Types that HDF5 does not have are stored as another one, and an attribute names them.
bool needs_dtype_attribute(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::boolean;
}

constexpr const char* kDigestAttribute = "digest";
constexpr const char* kDTypeAttribute = "dtype";

Handle string_type(const Checker& check, std::size_t bytes) {
  Handle type = check.opened(H5Tcopy(H5T_C_S1), H5Tclose, "no string type");
  check.succeeded(H5Tset_size(type, bytes), "no string type");
  check.succeeded(H5Tset_cset(type, H5T_CSET_UTF8), "no string type");
  check.succeeded(H5Tset_strpad(type, H5T_STR_NULLPAD), "no string type");
  return type;
}

class Composer {
 public:
  // `image` must outlive it.
  Composer(const std::string& path, std::vector<std::byte>& image)
      : check_(Checker::of_writing(path)), link_list_(make_link_list()), file_(create_file(image)) {}

  void write_metadata(std::string_view json) {
    const Handle type = string_type(check_, json.size());
    const Handle space = check_.opened(H5Screate(H5S_SCALAR), H5Sclose, "no space for the metadata");
    const Handle creation = untimed_list(check_, H5P_DATASET_CREATE);
    const Handle dataset = create_dataset(std::string(kMetadataName), type, space, creation);
    check_.succeeded(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, json.data()), "cannot write the metadata");
  }

  void write_array(const ArrayView& array, ChunkEncoder& encoder, int zstd_level) {
    create_groups_of(array.name);
    const Handle type = element_type(check_, array.dtype);
    const Handle space = create_space(array);
    const Handle creation = untimed_list(check_, H5P_DATASET_CREATE);
    if (array.bytes.size() <= kMaxCompactBytes) {
      check_.succeeded(H5Pset_layout(creation, H5D_COMPACT), "no compact layout");
      const Handle dataset = create_dataset(array.name, type, space, creation);
      write_compact(array, dataset, type);
      write_attributes(array, dataset);
    } else {
      const ChunkGrid grid(array.shape, size_bytes(array.dtype));
      set_chunked(creation, grid, zstd_level);
      const Handle dataset = create_dataset(array.name, type, space, creation);
      write_chunks(array, grid, dataset, encoder);
      write_attributes(array, dataset);
    }
  }

  void finish() { check_.succeeded(file_.reset(), "cannot close it"); }

 private:
  Handle make_link_list() const {
    Handle list = check_.opened(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "no link creation list");
    check_.succeeded(H5Pset_char_encoding(list, H5T_CSET_UTF8), "cannot set UTF-8 names");
    return list;
  }

  Handle create_file(std::vector<std::byte>& image) const {
    const Handle creation = untimed_list(check_, H5P_FILE_CREATE);
    check_.succeeded(H5Pset_userblock(creation, kUserBlockBytes), "cannot reserve the header");
    const Handle access = memory_access_list(check_, {.growing = &image, .fixed = {}});
    return check_.opened(H5Fcreate("holdfast", H5F_ACC_TRUNC, creation, access), H5Fclose, "HDF5 cannot create a file");
  }

  void create_groups_of(const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string group = name.substr(0, slash);
      if (!groups_.insert(group).second) continue;
      check_.opened(H5Gcreate2(file_, group.c_str(), link_list_, untimed_list(check_, H5P_GROUP_CREATE), H5P_DEFAULT),
                    H5Gclose, "cannot create group " + group);
    }
  }

  Handle create_space(const ArrayView& array) const {
    const hid_t id =
        array.shape.empty()
            ? H5Screate(H5S_SCALAR)
            : H5Screate_simple(static_cast<int>(array.shape.size()),
                               std::vector<hsize_t>(array.shape.begin(), array.shape.end()).data(), nullptr);
    return check_.opened(id, H5Sclose, "no space for array " + array.name);
  }

  void set_chunked(hid_t creation, const ChunkGrid& grid, int zstd_level) const {
    const std::vector<hsize_t> chunk(grid.chunk_shape().begin(), grid.chunk_shape().end());
    check_.succeeded(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), "no chunked layout");
    check_.succeeded(H5Pset_shuffle(creation), "no shuffle filter");
    // Optional, since this process does not register the filter: HDF5 stores the chunks that we encoded as they are.
    const auto level = static_cast<unsigned>(zstd_level);
    check_.succeeded(H5Pset_filter(creation, kZstdFilter, H5Z_FLAG_OPTIONAL, 1, &level), "no zstd filter");
  }

  Handle create_dataset(const std::string& name, hid_t type, hid_t space, hid_t creation) const {
    return check_.opened(H5Dcreate2(file_, name.c_str(), type, space, link_list_, creation, H5P_DEFAULT), H5Dclose,
                         "cannot create dataset " + name);
  }

  void write_compact(const ArrayView& array, hid_t dataset, hid_t type) const {
    if (array.bytes.empty()) return;
    check_.succeeded(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()),
                     "cannot write array " + array.name);
  }

  void write_chunks(const ArrayView& array, const ChunkGrid& grid, hid_t dataset, ChunkEncoder& encoder) const {
    for (std::uint64_t index = 0; index < grid.count(); ++index) {
      const ChunkGrid::Piece piece = grid.piece(index);
      const std::span<const std::byte> frame = encoder.encode(array.bytes.subspan(piece.first_byte, piece.bytes),
                                                              grid.chunk_bytes(), size_bytes(array.dtype));
      const std::vector<hsize_t> offset(piece.offset.begin(), piece.offset.end());
      check_.succeeded(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, offset.data(), frame.size(), frame.data()),
                       "cannot write array " + array.name);
    }
  }

  void write_attributes(const ArrayView& array, hid_t dataset) const {
    write_attribute(dataset, kDigestAttribute, digest(array.bytes).hex());
    if (needs_dtype_attribute(array.dtype)) write_attribute(dataset, kDTypeAttribute, std::string(name(array.dtype)));
  }

  void write_attribute(hid_t dataset, const char* name, const std::string& text) const {
    const Handle type = string_type(check_, text.size());
    const Handle space = check_.opened(H5Screate(H5S_SCALAR), H5Sclose, "no space for an attribute");
    const Handle attribute = check_.opened(H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                                           std::string("cannot create attribute ") + name);
    check_.succeeded(H5Awrite(attribute, type, text.data()), std::string("cannot write attribute ") + name);
  }

  Checker check_;
  Handle link_list_;
  Handle file_;
  std::set<std::string> groups_;  // that exist
};

struct Dimensions {
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes;
};

class Parser {
 public:
  Parser(Checker check, hid_t file, std::uint64_t file_bytes)
      : check_(std::move(check)), file_(file), file_bytes_(file_bytes) {}

  // The names of all datasets. Groups are walked without recursion, and only through hard links of a bounded depth.
  std::vector<std::string> list_datasets() const {
    std::vector<std::string> datasets;
    std::vector<std::string> groups{""};
    std::set<haddr_t> seen;
    while (!groups.empty()) {
      const std::string group = std::move(groups.back());
      groups.pop_back();
      for (const Link& link : list_links(group)) {
        const std::string path = group.empty() ? link.name : group + "/" + link.name;
        check_.require(link.is_hard, path + " is a soft or external link");
        H5O_info_t info;
        check_.succeeded(H5Oget_info_by_name2(file_, path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT),
                         "cannot look at " + path);
        check_.require(seen.insert(info.addr).second, path + " is a second name of another object");
        check_.require(info.type == H5O_TYPE_GROUP || info.type == H5O_TYPE_DATASET, path + " is no group or dataset");
        check_.require(path.size() <= kMaxNameBytes,
                       "a name is longer than " + std::to_string(kMaxNameBytes) + " bytes");
        const auto parts = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/')) + 1;
        check_.require(parts <= kMaxNameParts, path + " lies in too many groups");
        (info.type == H5O_TYPE_GROUP ? groups : datasets).push_back(path);
      }
    }
    std::sort(datasets.begin(), datasets.end());
    return datasets;
  }

  std::string read_metadata() const {
    const std::string label(kMetadataName);
    const Handle dataset = open_dataset(label);
    const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, "the metadata has no type");
    const std::size_t bytes = require_fixed_string(type, label);
    const Handle space = check_.opened(H5Dget_space(dataset), H5Sclose, "the metadata has no space");
    check_.require(H5Sget_simple_extent_type(space) == H5S_SCALAR, "the metadata is no scalar");
    require_plain_layout(dataset, label, bytes);
    std::string text(bytes, '\0');
    check_.succeeded(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "cannot read the metadata");
    return text;
  }

  ArrayInfo describe(const std::string& name) const {
    const Handle dataset = open_dataset(name);
    ArrayInfo info{.name = name, .dtype = read_dtype(dataset, name), .shape = {}, .digest = {}, .stored_bytes = 0};
    const Dimensions dimensions = read_dimensions(dataset, name, size_bytes(info.dtype));
    info.shape = dimensions.shape;
    info.digest = read_digest(dataset, name);
    info.stored_bytes = H5Dget_storage_size(dataset);
    if (dimensions.bytes <= kMaxCompactBytes) {
      require_plain_layout(dataset, name, dimensions.bytes);
    } else {
      require_our_chunks(dataset, info);
    }
    return info;
  }

  void read(const ArrayInfo& array, std::span<std::byte> out) const {
    const Handle dataset = open_dataset(array.name);
    if (out.size() > kMaxCompactBytes) return read_chunks(dataset, array, out);
    if (out.empty()) return;
    const Handle type = element_type(check_, array.dtype);
    check_.succeeded(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()),
                     "cannot read array " + array.name);
  }

 private:
  struct Link {
    std::string name;
    bool is_hard;
  };

  std::vector<Link> list_links(const std::string& group) const {
    const auto append = [](hid_t, const char* name, const H5L_info_t* info, void* list) -> herr_t {
      try {
        static_cast<std::vector<Link>*>(list)->push_back({.name = name, .is_hard = info->type == H5L_TYPE_HARD});
        return 0;
      } catch (const std::exception&) {
        return -1;  // HDF5 is C: no exception may pass through it
      }
    };
    const std::string path = "/" + group;
    const Handle handle =
        check_.opened(H5Gopen2(file_, path.c_str(), H5P_DEFAULT), H5Gclose, "cannot open group " + path);
    std::vector<Link> links;
    check_.succeeded(H5Literate(handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &links),
                     "cannot list group " + path);
    return links;
  }

  Handle open_dataset(const std::string& name) const {
    return check_.opened(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose, "cannot open dataset " + name);
  }

  // Returns the string's length.
  std::size_t require_fixed_string(hid_t type, const std::string& label) const {
    check_.require(H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0,
                   label + " is no string of fixed length");
    return H5Tget_size(type);
  }

  std::optional<std::string> read_attribute(hid_t dataset, const std::string& array, const char* attribute_name) const {
    const std::string label = "attribute " + std::string(attribute_name) + " of " + array;
    if (check_.succeeded(H5Aexists(dataset, attribute_name), "cannot look for " + label) == 0) return std::nullopt;
    const Handle attribute =
        check_.opened(H5Aopen(dataset, attribute_name, H5P_DEFAULT), H5Aclose, "cannot open " + label);
    const Handle type = check_.opened(H5Aget_type(attribute), H5Tclose, "no type of " + label);
    const Handle space = check_.opened(H5Aget_space(attribute), H5Sclose, "no space of " + label);
    const std::size_t bytes = require_fixed_string(type, label);
    check_.require(bytes <= 64 && H5Sget_simple_extent_type(space) == H5S_SCALAR, label + " is no short text");
    std::string text(bytes, '\0');
    check_.succeeded(H5Aread(attribute, type, text.data()), "cannot read " + label);
    return text;
  }

  DType read_dtype(hid_t dataset, const std::string& array) const {
    const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, "no type of " + array);
    const std::optional<std::string> attribute = read_attribute(dataset, array, kDTypeAttribute);
    constexpr std::array kAll = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                                 DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};
    for (const DType dtype : kAll) {
      const bool is_named = needs_dtype_attribute(dtype) ? attribute == name(dtype) : !attribute.has_value();
      if (is_named && H5Tequal(type, element_type(check_, dtype)) > 0) return dtype;
    }
    check_.fail(array + " has an element type that the format does not have");
  }

  Dimensions read_dimensions(hid_t dataset, const std::string& array, std::size_t element_bytes) const {
    const Handle space = check_.opened(H5Dget_space(dataset), H5Sclose, "no space of " + array);
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    check_.require(kind == H5S_SCALAR || kind == H5S_SIMPLE, array + " has no shape");
    const int axes = check_.succeeded(H5Sget_simple_extent_ndims(space), "no shape of " + array);
    std::vector<hsize_t> shape(static_cast<std::size_t>(axes));
    check_.succeeded(H5Sget_simple_extent_dims(space, shape.data(), nullptr), "no shape of " + array);
    Dimensions dimensions{.shape = {shape.begin(), shape.end()}, .bytes = 0};
    check_.require(multiply_shape(dimensions.shape, element_bytes, dimensions.bytes),
                   array + " is larger than 64 bits count");
    return dimensions;
  }

  Digest read_digest(hid_t dataset, const std::string& array) const {
    const std::optional<std::string> text = read_attribute(dataset, array, kDigestAttribute);
    check_.require(text.has_value(), array + " has no digest");
    try {
      return Digest::from_hex(*text);
    } catch (const Error& error) {
      check_.fail("the digest of " + array + " is none: " + error.what());
    }
  }

  Handle creation_list(hid_t dataset, const std::string& label) const {
    return check_.opened(H5Dget_create_plist(dataset), H5Pclose, "no creation list of " + label);
  }

  // All bytes are there, in this file: HDF5 would otherwise open other files or make bytes up.
  void require_plain_layout(hid_t dataset, const std::string& label, std::uint64_t bytes) const {
    const Handle creation = creation_list(dataset, label);
    const H5D_layout_t layout = H5Pget_layout(creation);
    const bool is_plain = (layout == H5D_COMPACT || layout == H5D_CONTIGUOUS) && H5Pget_external_count(creation) == 0;
    check_.require(is_plain, label + " is not stored plainly in the file");
    const std::uint64_t stored = H5Dget_storage_size(dataset);
    check_.require(stored == bytes && bytes <= file_bytes_,
                   label + " needs " + std::to_string(bytes) + " bytes, and " + std::to_string(stored) + " are stored");
  }

  void require_our_chunks(hid_t dataset, const ArrayInfo& array) const {
    const Handle creation = creation_list(dataset, array.name);
    check_.require(H5Pget_layout(creation) == H5D_CHUNKED, array.name + " is not stored in chunks");
    require_our_filters(creation, array.name);
    const ChunkGrid grid(array.shape, size_bytes(array.dtype));
    std::vector<hsize_t> chunk(array.shape.size());
    const int axes = H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    const bool has_our_shape =
        axes == static_cast<int>(chunk.size()) && std::equal(chunk.begin(), chunk.end(), grid.chunk_shape().begin());
    check_.require(has_our_shape, array.name + " is cut into other chunks");
    require_possible_size(dataset, array, grid);
  }

  void require_our_filters(hid_t creation, const std::string& array) const {
    constexpr std::array<H5Z_filter_t, 2> kFilters = {H5Z_FILTER_SHUFFLE, kZstdFilter};
    bool are_ours = H5Pget_nfilters(creation) == static_cast<int>(kFilters.size());
    for (unsigned i = 0; are_ours && i < kFilters.size(); ++i) {
      unsigned flags = 0;
      std::size_t values = 0;
      are_ours = H5Pget_filter2(creation, i, &flags, &values, nullptr, 0, nullptr, nullptr) == kFilters[i];
    }
    check_.require(are_ours, array + " is not encoded by shuffle and zstd");
  }

  // Memory for the array is taken before its chunks are seen.
  void require_possible_size(hid_t dataset, const ArrayInfo& array, const ChunkGrid& grid) const {
    const Handle space = check_.opened(H5Dget_space(dataset), H5Sclose, "no space of " + array.name);
    hsize_t chunks = 0;
    check_.succeeded(H5Dget_num_chunks(dataset, space, &chunks), "cannot count the chunks of " + array.name);
    check_.require(chunks == grid.count(), array.name + " has " + std::to_string(chunks) + " of its " +
                                               std::to_string(grid.count()) + " chunks");
    const bool is_possible =
        array.stored_bytes <= file_bytes_ && array.stored_bytes / min_frame_bytes(grid.chunk_bytes()) >= chunks;
    check_.require(is_possible, array.name + " cannot be stored in " + std::to_string(array.stored_bytes) + " bytes");
  }

  void read_chunks(hid_t dataset, const ArrayInfo& array, std::span<std::byte> out) const {
    const std::size_t element_bytes = size_bytes(array.dtype);
    const ChunkGrid grid(array.shape, element_bytes);
    ChunkDecoder decoder;
    std::vector<std::byte> frame;
    for (std::uint64_t index = 0; index < grid.count(); ++index) {
      const ChunkGrid::Piece piece = grid.piece(index);
      const std::string label = "chunk " + std::to_string(index) + " of " + array.name;
      read_frame(dataset, piece, label, frame);
      const bool is_whole =
          decoder.decode(frame, grid.chunk_bytes(), element_bytes, out.subspan(piece.first_byte, piece.bytes));
      check_.require(is_whole, label + " is no whole zstd frame of " + std::to_string(grid.chunk_bytes()) + " bytes");
    }
  }

  void read_frame(hid_t dataset, const ChunkGrid::Piece& piece, const std::string& label,
                  std::vector<std::byte>& frame) const {
    const std::vector<hsize_t> offset(piece.offset.begin(), piece.offset.end());
    hsize_t bytes = 0;
    check_.succeeded(H5Dget_chunk_storage_size(dataset, offset.data(), &bytes), "cannot find " + label);
    check_.require(bytes > 0 && bytes <= file_bytes_, label + " is not in the file");
    frame.resize(bytes);
    std::uint32_t skipped_filters = 0;
    check_.succeeded(H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped_filters, frame.data()),
                     "cannot read " + label);
    check_.require(skipped_filters == 0, label + " is not encoded");
  }

  Checker check_;
  hid_t file_;
  std::uint64_t file_bytes_;
};

}  // namespace

std::vector<std::byte> compose_hdf5(const std::string& path, std::string_view metadata_json,
                                    std::span<const ArrayView> arrays, const WriteOptions& options) {
  std::vector<std::byte> image;
  std::size_t bytes = metadata_json.size();
  for (const ArrayView& array : arrays) bytes += array.bytes.size();
  // Growing step by step would copy the image again and again. What compression saves is never touched, and so takes no
  // memory.
  image.reserve(bytes);
  const Session session;
  Composer composer(path, image);
  ChunkEncoder encoder(options.zstd_level);
  composer.write_metadata(metadata_json);
  for (const ArrayView& array : arrays) composer.write_array(array, encoder, options.zstd_level);
  composer.finish();
  return image;
}

struct Hdf5Reader::State {
  std::string path;
  std::vector<std::byte> bytes;
  std::optional<Handle> file;
  std::string metadata;
  std::vector<ArrayInfo> arrays;

  Parser parser() const { return {checker_of_reading(path), *file, bytes.size()}; }
};

Hdf5Reader::Hdf5Reader(std::string path, std::vector<std::byte> bytes) {
  const Session session;
  auto state = std::make_unique<State>();
  state->path = std::move(path);
  state->bytes = std::move(bytes);
  const Checker check = checker_of_reading(state->path);
  const Handle access = memory_access_list(check, {.growing = nullptr, .fixed = state->bytes});
  state->file.emplace(check.opened(H5Fopen("holdfast", H5F_ACC_RDONLY, access), H5Fclose, "HDF5 cannot open it"));
  const Parser parser = state->parser();
  bool has_metadata = false;
  for (const std::string& name : parser.list_datasets()) {
    if (name == kMetadataName) {
      state->metadata = parser.read_metadata();
      has_metadata = true;
    } else {
      state->arrays.push_back(parser.describe(name));
    }
  }
  check.require(has_metadata, "it has no metadata");
  state_ = std::move(state);
}

Hdf5Reader::~Hdf5Reader() {
  const Session session;
  state_->file.reset();
}

const std::string& Hdf5Reader::metadata() const {
  return state_->metadata;
}

const std::vector<ArrayInfo>& Hdf5Reader::arrays() const {
  return state_->arrays;
}

void Hdf5Reader::read(const ArrayInfo& array, std::span<std::byte> out) const {
  const Session session;
  state_->parser().read(array, out);
}

}  // namespace holdfast::format
