#include "hdf5/tree_parser.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "hdf5/hdf5_session.h"
#include "hdf5/memory_driver.h"
#include "hdf5/tree_names.h"
#include "hdf5/zstd_filter.h"
#include "shape_bytes.h"
#include "utf8.h"

namespace holdfast::format {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What is read at once, where the chunks allow it.
constexpr std::uint64_t kPieceBytes = 8 * kMiB;

// Never less is allowed than this, whatever the file's size, and beyond it never more than kMaxRatio times as much.
constexpr std::uint64_t kAlwaysAllowedBytes = 4096 * kMiB;
constexpr std::uint64_t kMaxRatio = 1000;

constexpr std::array<H5Z_filter_t, 4> kFilters = {H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32, 32015};

std::uint64_t multiply_or_max(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

// A type of numbers as a file may hold it, and how its elements are wanted in memory.
struct NumberType {
  Handle stored;
  Handle memory;
  DType dtype;
};

Handle copy_type(const Checker& check, hid_t type) {
  return check.opened(H5Tcopy(type), H5Tclose, "no element type");
}

// As HDF5 2.0 has it: 1 sign bit, 8 exponent bits with bias 127, 7 mantissa bits.
Handle bfloat16_type(const Checker& check) {
  Handle type = copy_type(check, H5T_IEEE_F32LE);
  check.succeeded(H5Tset_fields(type, 15, 7, 8, 0, 7), "no bfloat16 type");
  check.succeeded(H5Tset_size(type, 2), "no bfloat16 type");
  return type;
}

std::vector<NumberType> number_types(const Checker& check) {
  constexpr std::array kAll = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i8,  DType::i16,
                               DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32, DType::u64};
  std::vector<NumberType> types;
  for (const DType dtype : kAll) {
    const Handle little = dtype == DType::bf16 ? bfloat16_type(check) : element_type(check, dtype);
    for (const H5T_order_t order : {H5T_ORDER_LE, H5T_ORDER_BE}) {
      Handle stored = copy_type(check, little);
      check.succeeded(H5Tset_order(stored, order), "no element type");
      types.push_back({std::move(stored), copy_type(check, little), dtype});
    }
  }
  return types;
}

// What is to be known of a dataset before any of it is read.
struct Storage {
  std::uint64_t bytes = 0;   // in memory
  std::uint64_t stored = 0;  // in the file
  std::vector<std::uint64_t> shape;
  std::vector<hsize_t> chunk;  // empty when it is not chunked
};

class Parser {
 public:
  Parser(std::span<const std::byte> file, const TreeLimits& limits)
      : check_(ErrorCode::invalid_file, "", ""),
        limits_(limits),
        file_bytes_(file.size()),
        types_(number_types(check_)),
        file_(open(file)) {}

  void parse(TreeSink& sink) {
    list_objects();
    check_.require(declared_bytes_ <= max_declared_bytes(file_bytes_, limits_),
                   "its datasets declare " + std::to_string(declared_bytes_) + " bytes, and the file has " +
                       std::to_string(file_bytes_));
    for (const std::string& path : groups_) {
      const Handle group = open_object(path, H5I_GROUP);
      sink.add_group({path, read_attributes(group, label_of(path))});
    }
    for (const std::string& path : datasets_) read_dataset(path, sink);
  }

 private:
  struct Link {
    std::string name;
    bool is_hard;
  };
  struct LinkList {
    std::vector<Link> links;
    std::uint64_t room;  // for how many more
  };

  static std::string label_of(const std::string& path) { return path.empty() ? "the root" : "\"" + path + "\""; }

  Handle open(std::span<const std::byte> file) const {
    const Handle access = memory_access_list(check_, {.growing = nullptr, .fixed = file});
    // An absolute name, so that HDF5 does not ask for the working directory.
    return check_.opened(H5Fopen("/file", H5F_ACC_RDONLY, access), H5Fclose, "HDF5 cannot open it");
  }

  Handle open_object(const std::string& path, H5I_type_t kind) const {
    const std::string from_root = "/" + path;
    Handle object =
        check_.opened(H5Oopen(file_, from_root.c_str(), H5P_DEFAULT), H5Oclose, label_of(path) + " cannot be opened");
    check_.require(H5Iget_type(object) == kind, label_of(path) + " is not what its folder says");
    return object;
  }

  // Walks the groups without recursion, through hard links alone and through each object once, and looks at every
  // dataset's storage, so that nothing is read of a file that asks for too much.
  void list_objects() {
    std::vector<std::string> waiting{""};
    note_address(object_info(""), "");
    while (!waiting.empty()) {
      const std::string group = std::move(waiting.back());
      waiting.pop_back();
      for (const Link& link : list_links(group)) {
        const std::string path = group.empty() ? link.name : group + "/" + link.name;
        check_link(link, path);
        note_head_bytes(300 + path.size());
        const H5O_info_t info = object_info(path);
        note_address(info, path);
        const bool is_group = info.type == H5O_TYPE_GROUP;
        check_.require(is_group || info.type == H5O_TYPE_DATASET,
                       label_of(path) + " is a named type, which is no data");
        if (is_group) {
          waiting.push_back(path);
        } else {
          note_storage(path);
        }
      }
      groups_.push_back(group);
    }
    std::sort(groups_.begin(), groups_.end());
    std::sort(datasets_.begin(), datasets_.end());
  }

  void check_link(const Link& link, const std::string& path) const {
    const std::string name_problem = problem_of_name(link.name);
    check_.require(name_problem.empty(), label_of(path) + " " + name_problem);
    check_.require(link.is_hard, label_of(path) + " is a soft, external or user-defined link, which may lead anywhere");
    const std::string path_problem = problem_of_path(path);
    check_.require(path_problem.empty(), label_of(path) + " " + path_problem);
  }

  H5O_info_t object_info(const std::string& path) const {
    const std::string from_root = "/" + path;
    H5O_info_t info{};
    check_.succeeded(H5Oget_info_by_name2(file_, from_root.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT),
                     label_of(path) + " cannot be looked at");
    return info;
  }

  void note_address(const H5O_info_t& info, const std::string& path) {
    check_.require(addresses_.insert(info.addr).second, label_of(path) + " is a second name of another object");
    check_.require(addresses_.size() <= limits_.max_objects,
                   "it has more than " + std::to_string(limits_.max_objects) + " objects");
  }

  std::vector<Link> list_links(const std::string& group) const {
    const auto append = [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
      try {
        auto& list = *static_cast<LinkList*>(data);
        list.links.push_back({.name = name, .is_hard = info->type == H5L_TYPE_HARD});
        return list.room-- > 0 ? 0 : -1;
      } catch (const std::exception&) {
        return -1;  // HDF5 is C: no exception may pass through it
      }
    };
    const Handle handle = open_object(group, H5I_GROUP);
    LinkList list{.links = {}, .room = limits_.max_objects};
    check_.succeeded(H5Literate(handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &list),
                     "group " + label_of(group) + " cannot be listed");
    return std::move(list.links);
  }

  void note_storage(const std::string& path) {
    const Handle dataset = open_object(path, H5I_DATASET);
    const Storage storage = look_at_storage(dataset, label_of(path));
    const bool is_countable = !__builtin_add_overflow(declared_bytes_, storage.bytes, &declared_bytes_);
    check_.require(is_countable, label_of(path) + " declares too much");
    // Honest datasets do not share their bytes.
    stored_bytes_ += storage.stored;
    check_.require(stored_bytes_ <= file_bytes_, "its datasets take more bytes than the file has");
    datasets_.push_back(path);
  }

  // The order matters: HDF5 opens other files when it is asked for the shape of a virtual dataset.
  Storage look_at_storage(hid_t dataset, const std::string& label) const {
    const Handle creation = check_.opened(H5Dget_create_plist(dataset), H5Pclose, "no creation list of " + label);
    check_.require(H5Pget_external_count(creation) == 0, label + " is stored in other files");
    const H5D_layout_t layout = H5Pget_layout(creation);
    check_.require(layout != H5D_VIRTUAL, label + " is a virtual dataset, which other files hold");
    const bool is_plain = layout == H5D_COMPACT || layout == H5D_CONTIGUOUS;
    check_.require(is_plain || layout == H5D_CHUNKED, label + " has an unknown layout");
    check_filters(creation, label);

    Storage storage;
    storage.shape = read_shape(dataset, label);
    const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, "no type of " + label);
    const std::size_t element_bytes = size_bytes(require_dtype(dataset, type, label));
    check_.require(multiply_shape(storage.shape, element_bytes, storage.bytes),
                   label + " is larger than 64 bits count");
    storage.stored = H5Dget_storage_size(dataset);
    if (layout == H5D_CHUNKED) storage.chunk = read_chunk_shape(creation, storage.shape.size(), label);
    check_stored_size(storage, is_plain, label);
    return storage;
  }

  void check_filters(hid_t creation, const std::string& label) const {
    const int count = check_.succeeded(H5Pget_nfilters(creation), "no filters of " + label);
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0;
      std::size_t values = 0;
      const H5Z_filter_t filter =
          H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
      check_.require(std::find(kFilters.begin(), kFilters.end(), filter) != kFilters.end(),
                     label + " is encoded by HDF5's filter " + std::to_string(filter) +
                         ", and shuffle, deflate, fletcher32 and zstd (32015) are read");
    }
  }

  // Plain storage has all bytes, or none yet: then they are the fill value.
  void check_stored_size(const Storage& storage, bool is_plain, const std::string& label) const {
    const std::string sizes = label + " declares " + std::to_string(storage.bytes) + " bytes, and " +
                              std::to_string(storage.stored) + " are stored";
    check_.require(storage.stored <= file_bytes_, sizes);
    check_.require(!is_plain || storage.stored == storage.bytes || storage.stored == 0, sizes);
    check_.require(storage.bytes <= kAlwaysAllowedBytes || storage.bytes / kMaxRatio <= storage.stored, sizes);
  }

  std::vector<hsize_t> read_chunk_shape(hid_t creation, std::size_t axes, const std::string& label) const {
    std::vector<hsize_t> chunk(axes);
    const int found = H5Pget_chunk(creation, static_cast<int>(axes), chunk.data());
    const bool is_possible =
        found == static_cast<int>(axes) && axes > 0 && std::find(chunk.begin(), chunk.end(), 0U) == chunk.end();
    check_.require(is_possible, label + " has impossible chunks");
    return chunk;
  }

  std::vector<std::uint64_t> read_shape(hid_t dataset, const std::string& label) const {
    const Handle space = check_.opened(H5Dget_space(dataset), H5Sclose, "no space of " + label);
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    check_.require(kind == H5S_SCALAR || kind == H5S_SIMPLE, label + " has no shape");
    return read_extents(space, label);
  }

  std::vector<std::uint64_t> read_extents(hid_t space, const std::string& label) const {
    const int axes = check_.succeeded(H5Sget_simple_extent_ndims(space), "no shape of " + label);
    check_.require(axes <= static_cast<int>(kMaxAxes), label + " has too many axes");
    std::vector<hsize_t> extents(static_cast<std::size_t>(axes));
    check_.succeeded(H5Sget_simple_extent_dims(space, extents.data(), nullptr), "no shape of " + label);
    return {extents.begin(), extents.end()};
  }

  const NumberType* find_number_type(hid_t type) const {
    const auto found = std::find_if(types_.begin(), types_.end(),
                                    [&](const NumberType& candidate) { return H5Tequal(type, candidate.stored) > 0; });
    return found == types_.end() ? nullptr : &*found;
  }

  // h5py's bool: an enumeration of one byte with FALSE = 0 and TRUE = 1.
  static bool is_boolean(hid_t type) {
    if (H5Tget_class(type) != H5T_ENUM || H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
    for (const auto& [name, wanted] : {std::pair<const char*, std::int8_t>{"FALSE", 0}, {"TRUE", 1}}) {
      std::int8_t value = -1;
      if (H5Tenum_valueof(type, name, &value) < 0 || value != wanted) return false;
    }
    return true;
  }

  bool is_keras_bfloat16(hid_t dataset, hid_t type) const {
    if (H5Tget_class(type) != H5T_OPAQUE || H5Tget_size(type) != 2) return false;
    if (H5Aexists(dataset, "dtype") <= 0) return false;
    const Hdf5Attribute attribute = read_attribute(dataset, "dtype", "a dataset of opaque elements");
    const auto* text = std::get_if<std::string>(&attribute.value);
    return text != nullptr && *text == "bfloat16";
  }

  DType require_dtype(hid_t dataset, hid_t type, const std::string& label) const {
    if (const NumberType* number = find_number_type(type)) return number->dtype;
    if (is_boolean(type)) return DType::boolean;
    if (is_keras_bfloat16(dataset, type)) return DType::bf16;
    check_.fail(label + " has elements of a type that is not read (" + class_name(type) + ")");
  }

  static std::string class_name(hid_t type) {
    switch (H5Tget_class(type)) {
      case H5T_INTEGER:
        return "integers of unusual size or precision";
      case H5T_FLOAT:
        return "floats of unusual size or precision";
      case H5T_TIME:
        return "times";
      case H5T_STRING:
        return "strings";
      case H5T_BITFIELD:
        return "bit fields";
      case H5T_OPAQUE:
        return "opaque bytes";
      case H5T_COMPOUND:
        return "compounds";
      case H5T_REFERENCE:
        return "references";
      case H5T_ENUM:
        return "an enumeration";
      case H5T_VLEN:
        return "sequences of variable length";
      case H5T_ARRAY:
        return "arrays";
      default:
        return "an unknown class";
    }
  }

  void read_dataset(const std::string& path, TreeSink& sink) {
    const std::string label = label_of(path);
    const Handle dataset = open_object(path, H5I_DATASET);
    const Storage storage = look_at_storage(dataset, label);
    const Handle type = check_.opened(H5Dget_type(dataset), H5Tclose, "no type of " + label);
    const NumberType* number = find_number_type(type);
    const DType dtype = require_dtype(dataset, type, label);
    std::vector<Hdf5Attribute> attributes = read_attributes(dataset, label);
    const bool says_its_type = dtype == DType::bf16 && number == nullptr;
    if (says_its_type) std::erase_if(attributes, [](const Hdf5Attribute& each) { return each.name == "dtype"; });
    sink.add_dataset({NamedArray{path, dtype, storage.shape, {}}, std::move(attributes)}, storage.bytes);
    if (storage.bytes == 0) return;
    read_elements(dataset, number != nullptr ? hid_t{number->memory} : hid_t{type}, dtype, storage, label, sink);
  }

  // In pieces of whole rows of chunks, so that every chunk is decoded once.
  void read_elements(hid_t dataset, hid_t memory_type, DType dtype, const Storage& storage, const std::string& label,
                     TreeSink& sink) const {
    std::vector<std::byte> buffer;
    const std::uint64_t rows = storage.shape.empty() ? 1 : storage.shape[0];
    const std::uint64_t row_bytes = storage.bytes / rows;
    const std::uint64_t step = rows_at_once(storage, row_bytes);
    for (std::uint64_t row = 0; row < rows; row += step) {
      const std::uint64_t count = std::min(step, rows - row);
      buffer.resize(count * row_bytes);
      read_rows(dataset, memory_type, storage.shape, row, count, buffer, label);
      const bool is_valid = dtype != DType::boolean || std::all_of(buffer.begin(), buffer.end(), [](std::byte value) {
                              return value <= std::byte{1};
                            });
      check_.require(is_valid, label + " has truth values that are neither true nor false");
      sink.add_elements(buffer);
    }
  }

  static std::uint64_t rows_at_once(const Storage& storage, std::uint64_t row_bytes) {
    const std::uint64_t wanted = std::max<std::uint64_t>(1, kPieceBytes / row_bytes);
    if (storage.chunk.empty()) return wanted;
    const std::uint64_t chunk_rows = storage.chunk[0];
    return wanted <= chunk_rows ? chunk_rows : wanted / chunk_rows * chunk_rows;
  }

  void read_rows(hid_t dataset, hid_t memory_type, const std::vector<std::uint64_t>& shape, std::uint64_t row,
                 std::uint64_t rows, std::span<std::byte> out, const std::string& label) const {
    const std::string problem = label + " cannot be read";
    if (shape.empty()) {
      check_.succeeded(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), problem);
      return;
    }
    std::vector<hsize_t> start(shape.size());
    std::vector<hsize_t> count(shape.begin(), shape.end());
    start[0] = row;
    count[0] = rows;
    const Handle from = check_.opened(H5Dget_space(dataset), H5Sclose, problem);
    const Handle to =
        check_.opened(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, problem);
    check_.succeeded(H5Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), problem);
    check_.succeeded(H5Dread(dataset, memory_type, to, from, H5P_DEFAULT, out.data()), problem);
  }

  std::vector<Hdf5Attribute> read_attributes(hid_t object, const std::string& owner) {
    std::vector<Hdf5Attribute> attributes;
    for (const std::string& name : list_attributes(object, owner)) {
      check_.require(!name.empty() && name.size() <= kMaxTreePathBytes && is_utf8(name),
                     "an attribute of " + owner + " has no valid name");
      attributes.push_back(read_attribute(object, name, owner));
      note_head_bytes(16 + name.size() + size_of(attributes.back()));
    }
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return attributes;
  }

  void note_head_bytes(std::uint64_t bytes) {
    head_bytes_ += bytes;
    check_.require(head_bytes_ <= max_head_bytes(file_bytes_),
                   "its names and attributes are larger than the file can hold");
  }

  static std::uint64_t size_of(const Hdf5Attribute& attribute) {
    if (const auto* text = std::get_if<std::string>(&attribute.value)) return text->size();
    if (const auto* array = std::get_if<NamedArray>(&attribute.value))
      return 8 * array->shape.size() + array->bytes.size();
    std::uint64_t bytes = 0;
    for (const std::string& text : std::get<std::vector<std::string>>(attribute.value)) bytes += 16 + text.size();
    return bytes;
  }

  std::vector<std::string> list_attributes(hid_t object, const std::string& owner) const {
    struct NameList {
      std::vector<std::string> names;
      std::uint64_t room;
    };
    const auto append = [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
      try {
        auto& list = *static_cast<NameList*>(data);
        list.names.emplace_back(name);
        return list.room-- > 0 ? 0 : -1;
      } catch (const std::exception&) {
        return -1;  // HDF5 is C: no exception may pass through it
      }
    };
    NameList list{.names = {}, .room = limits_.max_objects};
    check_.succeeded(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &list),
                     "the attributes of " + owner + " cannot be listed");
    return std::move(list.names);
  }

  Hdf5Attribute read_attribute(hid_t object, const std::string& name, const std::string& owner) const {
    const std::string label = "attribute \"" + name + "\" of " + owner;
    const Handle attribute =
        check_.opened(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, label + " cannot be opened");
    const Handle type = check_.opened(H5Aget_type(attribute), H5Tclose, "no type of " + label);
    const Handle space = check_.opened(H5Aget_space(attribute), H5Sclose, "no space of " + label);
    if (H5Tget_class(type) == H5T_STRING) return {name, read_strings(attribute, type, space, label)};
    const NumberType* number = find_number_type(type);
    check_.require(number != nullptr || is_boolean(type),
                   label + " has a type that is not read (" + class_name(type) + ")");
    const hid_t memory_type = number != nullptr ? hid_t{number->memory} : hid_t{type};
    return {name,
            read_numbers(attribute, memory_type, space, number != nullptr ? number->dtype : DType::boolean, label)};
  }

  // Its elements as `type` has them in memory. The file bounds what is allocated.
  std::vector<std::byte> read_attribute_bytes(hid_t attribute, hid_t type, const std::vector<std::uint64_t>& shape,
                                              const std::string& label) const {
    std::uint64_t bytes = 0;
    const bool is_possible = multiply_shape(shape, H5Tget_size(type), bytes) && bytes <= file_bytes_;
    check_.require(is_possible, label + " declares more than the file holds");
    std::vector<std::byte> elements(bytes);
    if (bytes > 0) check_.succeeded(H5Aread(attribute, type, elements.data()), label + " cannot be read");
    return elements;
  }

  NamedArray read_numbers(hid_t attribute, hid_t type, hid_t space, DType dtype, const std::string& label) const {
    NamedArray array{"", dtype, {0}, {}};
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return array;
    array.shape = read_extents(space, label);
    array.bytes = read_attribute_bytes(attribute, type, array.shape, label);
    return array;
  }

  std::variant<std::string, std::vector<std::string>, NamedArray> read_strings(hid_t attribute, hid_t type, hid_t space,
                                                                               const std::string& label) const {
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    if (kind == H5S_NULL) return std::string();
    const std::vector<std::uint64_t> shape = read_extents(space, label);
    check_.require(shape.size() <= 1, label + " is an array of strings with several axes");
    std::vector<std::string> texts = H5Tis_variable_str(type) > 0
                                         ? read_variable_strings(attribute, type, space, shape, label)
                                         : read_fixed_strings(attribute, type, shape, label);
    for (const std::string& text : texts) check_.require(is_utf8(text), label + " is not UTF-8 text without NUL");
    if (kind == H5S_SCALAR) return std::move(texts.at(0));
    return texts;
  }

  std::vector<std::string> read_variable_strings(hid_t attribute, hid_t type, hid_t space,
                                                 const std::vector<std::uint64_t>& shape,
                                                 const std::string& label) const {
    const Handle memory_type = copy_type(check_, H5T_C_S1);
    check_.succeeded(H5Tset_size(memory_type, H5T_VARIABLE), "no string type");
    check_.succeeded(H5Tset_cset(memory_type, H5Tget_cset(type)), "no string type");
    std::vector<std::byte> elements = read_attribute_bytes(attribute, memory_type, shape, label);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < elements.size(); i += sizeof(char*)) {
      const char* text = nullptr;
      std::copy_n(elements.data() + i, sizeof text, reinterpret_cast<std::byte*>(&text));
      texts.emplace_back(text == nullptr ? "" : text);
    }
    if (!elements.empty()) H5Dvlen_reclaim(memory_type, space, H5P_DEFAULT, elements.data());
    return texts;
  }

  std::vector<std::string> read_fixed_strings(hid_t attribute, hid_t type, const std::vector<std::uint64_t>& shape,
                                              const std::string& label) const {
    const std::size_t width = H5Tget_size(type);
    check_.require(width > 0, label + " has strings of no size");
    const std::vector<std::byte> elements = read_attribute_bytes(attribute, type, shape, label);
    const H5T_str_t padding = H5Tget_strpad(type);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < elements.size(); i += width) {
      texts.push_back(without_padding({reinterpret_cast<const char*>(elements.data()) + i, width}, padding));
    }
    return texts;
  }

  static std::string without_padding(std::string_view text, H5T_str_t padding) {
    if (padding == H5T_STR_NULLTERM) return std::string(text.substr(0, text.find('\0')));
    const char filler = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
    return std::string(text.substr(0, text.find_last_not_of(filler) + 1));
  }

  Checker check_;
  TreeLimits limits_;
  std::uint64_t file_bytes_;
  std::vector<NumberType> types_;
  Handle file_;

  std::vector<std::string> groups_;
  std::vector<std::string> datasets_;
  std::set<haddr_t> addresses_;
  std::uint64_t declared_bytes_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t head_bytes_ = 0;  // names and attributes
};

}  // namespace

std::uint64_t max_declared_bytes(std::uint64_t file_bytes, const TreeLimits& limits) {
  return std::min(limits.max_array_bytes, std::max(kAlwaysAllowedBytes, multiply_or_max(file_bytes, kMaxRatio)));
}

std::uint64_t max_head_bytes(std::uint64_t file_bytes) {
  return 4 * std::min(file_bytes, std::numeric_limits<std::uint64_t>::max() / 8) + kMiB;
}

bool prepare_hdf5() {
  if (H5dont_atexit() < 0 || H5open() < 0) return false;
  const Session session;
  return register_zstd_filter();
}

void parse_hdf5_tree(std::span<const std::byte> file, const TreeLimits& limits, TreeSink& sink) {
  const Session session;
  Parser(file, limits).parse(sink);
}

}  // namespace holdfast::format
