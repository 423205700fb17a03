#pragma once

// Checks of arrays and metadata that several formats of exchange share.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "holdfast/format/array_file.h"

namespace holdfast::format {

// Throws Error{invalid_argument, "cannot write PATH: PROBLEM"}.
[[noreturn]] void refuse_to_write(const std::string& path, const std::string& problem);

// Throws Error{invalid_argument} unless every array has a name in UTF-8 that no other has, the bytes of its shape
// and, if it is boolean, only the values 0 and 1.
void check_arrays(const std::string& path, std::span<const ArrayView> arrays);

// The bytes of that shape, for a sentence: "24", or "more than 64 bits can count".
std::string bytes_for_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes);

// Throws Error{invalid_argument} unless the text is JSON in UTF-8.
void check_metadata(const std::string& path, std::string_view metadata_json);

// True for one JSON text in UTF-8 without NUL, which the JSON library would take for the end of the text.
bool is_json(std::string_view text);

}  // namespace holdfast::format
