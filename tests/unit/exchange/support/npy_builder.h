#pragma once

// Builds .npy files byte by byte, without the writer under test.

#include <cstddef>
#include <string>
#include <vector>

#include "unit/exchange/support/zip_builder.h"

namespace holdfast::format::testing {

// A .npy file of the given version, without padding in its header.
inline std::vector<std::byte> npy(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string length;
  for (unsigned i = 0; i < (version == 1 ? 2 : 4); ++i) length += static_cast<char>(dictionary.size() >> (8 * i));
  return bytes_of("\x93NUMPY" + std::string{version, '\0'} + length + dictionary + data);
}

inline std::string dictionary(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

}  // namespace holdfast::format::testing
