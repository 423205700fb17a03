#pragma once

// Strings of attributes and datasets: what HDF5 gives for their elements, as text.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hdf5/hdf5_session.h"

namespace holdfast::hdf5_reader {

// The type to read elements of the string type `stored` as; `label` names the object in errors. Where the strings have
// a variable length, HDF5 gives pointers to memory of its own.
format::Handle string_memory_type(const format::Checker& check, hid_t stored, const std::string& label);

// The strings that were read into `elements` as `type`, which is of string_memory_type() and may not be used again.
// UTF-8 without NUL, or it throws.
std::vector<std::string> take_strings(const format::Checker& check, hid_t type, hid_t space,
                                      std::span<std::byte> elements, const std::string& label);

}  // namespace holdfast::hdf5_reader
