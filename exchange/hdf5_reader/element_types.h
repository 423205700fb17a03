#pragma once

// The HDF5 element types that are supported, and the DType that each becomes.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hdf5/hdf5_session.h"
#include "holdfast/base/dtype.h"

namespace holdfast::hdf5_reader {

struct ElementType {
  DType dtype;
  bool is_big_endian = false;
};

class ElementTypes {
 public:
  explicit ElementTypes(const format::Checker& check);

  // Finds the type of numbers in either byte order, and of h5py's bool: an enumeration of one byte with FALSE = 0 and
  // TRUE = 1.
  std::optional<ElementType> find(hid_t type) const;

 private:
  struct Number {
    format::Handle stored;
    ElementType type;
  };
  std::vector<Number> numbers_;
};

// The kind of type for errors, such as "references".
std::string class_name(hid_t type);

}  // namespace holdfast::hdf5_reader
