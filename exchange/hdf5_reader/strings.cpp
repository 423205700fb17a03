// Strings come in two forms: fixed ones are bytes with padding, variable ones are pointers into memory of HDF5. Callers
// get plain text from both.

#include "strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "holdfast/base/utf8.h"

namespace holdfast::hdf5_reader {
namespace {

using format::Checker;
using format::Handle;

// A fixed-length string ends at its first NUL, or is filled up with NULs or blanks, as its type says.
std::string without_padding(std::string_view text, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return std::string(text.substr(0, text.find('\0')));
  const char filler = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  return std::string(text.substr(0, text.find_last_not_of(filler) + 1));
}

std::vector<std::string> copy_fixed_strings(hid_t type, std::span<const std::byte> elements) {
  const std::size_t width = H5Tget_size(type);
  const H5T_str_t padding = H5Tget_strpad(type);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < elements.size(); i += width) {
    texts.push_back(without_padding({reinterpret_cast<const char*>(elements.data()) + i, width}, padding));
  }
  return texts;
}

std::vector<std::string> take_variable_strings(hid_t type, hid_t space, std::span<std::byte> elements) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < elements.size(); i += sizeof(char*)) {
    // The bytes hold a pointer, which may be unaligned.
    const char* text = nullptr;
    std::copy_n(elements.data() + i, sizeof text, reinterpret_cast<std::byte*>(&text));
    texts.emplace_back(text == nullptr ? "" : text);
  }
  // The pointers belong to HDF5.
  if (!elements.empty()) H5Dvlen_reclaim(type, space, H5P_DEFAULT, elements.data());
  return texts;
}

}  // namespace

Handle string_memory_type(const Checker& check, hid_t stored, const std::string& label) {
  if (H5Tis_variable_str(stored) <= 0) {
    // The loop that copies fixed strings steps by this size.
    check.require(H5Tget_size(stored) > 0, fmt::format("{} has strings of size 0", label));
    return check.opened(H5Tcopy(stored), H5Tclose, "cannot create a string type");
  }
  Handle type = check.opened(H5Tcopy(H5T_C_S1), H5Tclose, "cannot create a string type");
  check.succeeded(H5Tset_size(type, H5T_VARIABLE), "cannot create a string type");
  check.succeeded(H5Tset_cset(type, H5Tget_cset(stored)), "cannot create a string type");
  return type;
}

std::vector<std::string> take_strings(const Checker& check, hid_t type, hid_t space, std::span<std::byte> elements,
                                      const std::string& label) {
  std::vector<std::string> texts =
      H5Tis_variable_str(type) > 0 ? take_variable_strings(type, space, elements) : copy_fixed_strings(type, elements);
  for (const std::string& text : texts) {
    check.require(is_utf8(text), fmt::format("{} is not UTF-8 text without NUL", label));
  }
  return texts;
}

}  // namespace holdfast::hdf5_reader
