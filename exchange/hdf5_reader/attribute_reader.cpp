// Attributes are not compressed, so the size of the file bounds every allocation here. Names and values are checked
// before they are passed on, because HDF5 returns whatever the file says.

#include "attribute_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bytes/element_bytes.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/utf8.h"
#include "strings.h"

namespace holdfast::hdf5_reader {
namespace {

using format::Handle;
using format::Hdf5Attribute;
using format::NamedArray;

// HDF5 hands out names one by one, through a C callback.
struct NameList {
  std::vector<std::string> names;
  std::uint64_t room;  // how many more names fit
};

herr_t append_name(hid_t, const char* name, const H5A_info_t*, void* data) {
  try {
    auto& list = *static_cast<NameList*>(data);
    // A negative result ends HDF5's iteration with an error.
    if (list.room-- == 0) return -1;
    list.names.emplace_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;  // HDF5 is C: no exception may pass through it
  }
}

}  // namespace

std::vector<std::string> AttributeReader::list(hid_t object, const std::string& owner, std::uint64_t max_count) const {
  NameList list{.names = {}, .room = max_count};
  check_.succeeded(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, append_name, &list),
                   fmt::format("the attributes of {} cannot be listed", owner));
  for (const std::string& name : list.names) {
    const bool is_valid = !name.empty() && name.size() <= format::kMaxTreePathBytes && is_utf8(name);
    check_.require(is_valid, fmt::format("an attribute of {} has no valid name", owner));
  }
  // The order in a file depends on how it was written; the receiver requires this one.
  std::sort(list.names.begin(), list.names.end());
  return std::move(list.names);
}

Hdf5Attribute AttributeReader::read(hid_t object, const std::string& name, const std::string& owner) const {
  const std::string label = fmt::format("attribute \"{}\" of {}", name, owner);
  const Handle attribute =
      check_.opened(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, fmt::format("{} cannot be opened", label));
  const Handle type = check_.opened(H5Aget_type(attribute), H5Tclose, fmt::format("cannot read the type of {}", label));
  const Handle space =
      check_.opened(H5Aget_space(attribute), H5Sclose, fmt::format("cannot read the dataspace of {}", label));
  // The type is read from the attribute itself, since a file may say anything.
  const bool is_string = H5Tget_class(type) == H5T_STRING;
  return {name, is_string ? read_strings(attribute, type, space, label) : read_numbers(attribute, type, space, label)};
}

std::vector<std::uint64_t> read_shape(const format::Checker& check, hid_t space, const std::string& label) {
  const std::string problem = fmt::format("cannot read the shape of {}", label);
  // A null dataspace has no extents; callers ask for it first.
  const int axes = check.succeeded(H5Sget_simple_extent_ndims(space), problem);
  check.require(axes <= static_cast<int>(kMaxAxes), fmt::format("{} has too many axes", label));
  std::vector<hsize_t> extents(static_cast<std::size_t>(axes));
  check.succeeded(H5Sget_simple_extent_dims(space, extents.data(), nullptr), problem);
  return {extents.begin(), extents.end()};
}

// Returns the elements as `type` has them. Attributes are not compressed, so the file bounds what is allocated.
std::vector<std::byte> AttributeReader::read_elements(hid_t attribute, hid_t type, const Shape& shape,
                                                      const std::string& label) const {
  std::uint64_t bytes = 0;
  const bool is_possible = multiply_shape(shape, H5Tget_size(type), bytes) && bytes <= file_bytes_;
  check_.require(is_possible, fmt::format("{} declares more bytes than the file has", label));
  std::vector<std::byte> elements(bytes);
  if (bytes > 0) check_.succeeded(H5Aread(attribute, type, elements.data()), fmt::format("{} cannot be read", label));
  return elements;
}

AttributeReader::Value AttributeReader::read_numbers(hid_t attribute, hid_t type, hid_t space,
                                                     const std::string& label) const {
  const std::optional<ElementType> element = types_.find(type);
  check_.require(element.has_value(), fmt::format("{} has an unsupported type ({})", label, class_name(type)));
  NamedArray array{"", element->dtype, {0}, {}};
  // A null space has no value: h5py writes it for Empty.
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return array;
  array.shape = read_shape(check_, space, label);
  array.bytes = read_elements(attribute, type, array.shape, label);
  if (element->is_big_endian) format::swap_bytes(array.bytes, size_bytes(element->dtype));
  check_.require(element->dtype != DType::boolean || format::holds_booleans(array.bytes),
                 fmt::format("{} has boolean elements other than 0 and 1", label));
  return array;
}

AttributeReader::Value AttributeReader::read_strings(hid_t attribute, hid_t type, hid_t space,
                                                     const std::string& label) const {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  // As h5py's Empty: there is a type, but no value.
  if (kind == H5S_NULL) return std::string();
  const Shape shape = read_shape(check_, space, label);
  check_.require(shape.size() <= 1, fmt::format("{} is an array of strings with several axes", label));
  const Handle memory_type = string_memory_type(check_, type, label);
  std::vector<std::byte> elements = read_elements(attribute, memory_type, shape, label);
  std::vector<std::string> texts = take_strings(check_, memory_type, space, elements, label);
  if (shape.empty()) return std::move(texts.at(0));
  return texts;
}

}  // namespace holdfast::hdf5_reader
