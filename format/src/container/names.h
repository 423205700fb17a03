#pragma once

// Which names an array may have: one rule for writer and reader.

#include <cstddef>
#include <string_view>

namespace holdfast::format {

// The deepest nesting of groups that is written or read.
inline constexpr std::size_t kMaxNameParts = 32;
inline constexpr std::size_t kMaxNameBytes = 1024;

// The dataset that holds the metadata; no array may have this name.
inline constexpr std::string_view kMetadataName = "metadata";

// Whether `name` is UTF-8 without NUL, of 1 to kMaxNameBytes bytes, in up to kMaxNameParts parts separated
// by '/'. No part may be empty, "." or "..".
bool is_valid_name(std::string_view name);

}  // namespace holdfast::format
