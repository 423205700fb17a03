#pragma once

// Reads the attributes of groups and datasets.

#include <cstdint>
#include <string>
#include <vector>

#include "element_types.h"
#include "foreign_hdf5/tree.h"

namespace holdfast::hdf5_reader {

// The extents of a dataspace; none for a scalar. `label` names its owner in errors.
std::vector<std::uint64_t> read_shape(const format::Checker& check, hid_t space, const std::string& label);

class AttributeReader {
 public:
  // All references must outlive the object. The file's size bounds what an attribute may declare.
  AttributeReader(const format::Checker& check, const ElementTypes& types, std::uint64_t file_bytes)
      : check_(check), types_(types), file_bytes_(file_bytes) {}

  // Returns the names, sorted, and at most `max_count` of them. `owner` names the object in errors.
  std::vector<std::string> list(hid_t object, const std::string& owner, std::uint64_t max_count) const;
  format::Hdf5Attribute read(hid_t object, const std::string& name, const std::string& owner) const;

 private:
  using Value = decltype(format::Hdf5Attribute::value);
  using Shape = std::vector<std::uint64_t>;

  std::vector<std::byte> read_elements(hid_t attribute, hid_t type, const Shape& shape, const std::string& label) const;
  Value read_numbers(hid_t attribute, hid_t type, hid_t space, const std::string& label) const;
  Value read_strings(hid_t attribute, hid_t type, hid_t space, const std::string& label) const;

  const format::Checker& check_;
  const ElementTypes& types_;
  std::uint64_t file_bytes_;
};

}  // namespace holdfast::hdf5_reader
