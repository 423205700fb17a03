#pragma once

// Converts the elements that HDF5 returns for strings of attributes and datasets to text.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hdf5/hdf5_session.h"

namespace holdfast::hdf5_reader {

// Returns the type to read elements of the string type `stored` as. For strings of variable length, HDF5 then returns
// pointers to memory of its own. `label` names the object in errors.
format::Handle string_memory_type(const format::Checker& check, hid_t stored, const std::string& label);

// Returns the strings in `elements`, which were read as `type`, a result of string_memory_type(). Frees HDF5's
// memory, so `elements` may not be used again. Throws unless all strings are UTF-8 without NUL.
std::vector<std::string> take_strings(const format::Checker& check, hid_t type, hid_t space,
                                      std::span<std::byte> elements, const std::string& label);

}  // namespace holdfast::hdf5_reader
