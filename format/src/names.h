#pragma once

// What an array may be called and how large it may be: one rule for writer and reader.

#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast::format {

// The deepest nesting of groups that is written or read.
inline constexpr std::size_t kMaxNameParts = 32;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxAxes = 32;

// The dataset that holds the metadata; no array may have this name.
inline constexpr std::string_view kMetadataName = "metadata";

// UTF-8 without NUL, 1 to kMaxNameBytes bytes in up to kMaxNameParts parts separated by '/', none empty, "." or "..".
bool is_valid_name(std::string_view name);

bool is_utf8_text(std::string_view text);

// The bytes that `shape` takes. False when 64 bits cannot hold the number.
[[nodiscard]] bool multiply_shape(std::span<const std::uint64_t> shape, std::size_t element_bytes,
                                  std::uint64_t& bytes);

}  // namespace holdfast::format
