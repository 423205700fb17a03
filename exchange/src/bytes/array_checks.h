#pragma once

// What holds of arrays in every format of exchange.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/format/array_file.h"

namespace holdfast::format {

// Throws Error{invalid_argument, "cannot write PATH: PROBLEM"}.
[[noreturn]] void refuse_to_write(const std::string& path, const std::string& problem);

// Throws Error{invalid_argument} unless every array has a name of its own in UTF-8, the bytes of its shape and, where
// it is boolean, only 0 and 1.
void check_arrays(const std::string& path, std::span<const ArrayView> arrays);

// Throws Error{invalid_argument} unless it is UTF-8 and JSON.
void check_metadata(const std::string& path, std::string_view metadata_json);

// UTF-8 without NUL (which the JSON library would take for the end) and one JSON text.
bool is_json(std::string_view text);

// No byte of another value than 0 and 1, which alone are booleans in C++.
bool holds_booleans(std::span<const std::byte> bytes);

}  // namespace holdfast::format
