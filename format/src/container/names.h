#pragma once

// What an array may be called: one rule for writer and reader.

#include <cstddef>
#include <string_view>

namespace holdfast::format {

// The deepest nesting of groups that is written or read.
inline constexpr std::size_t kMaxNameParts = 32;
inline constexpr std::size_t kMaxNameBytes = 1024;

// The dataset that holds the metadata; no array may have this name.
inline constexpr std::string_view kMetadataName = "metadata";

// UTF-8 without NUL, 1 to kMaxNameBytes bytes in up to kMaxNameParts parts separated by '/', none empty, "." or "..".
bool is_valid_name(std::string_view name);

}  // namespace holdfast::format
