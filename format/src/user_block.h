#pragma once

// The 512 bytes in front of the HDF5 part (HDF5 calls such a prefix a user block): which format this is, how long the
// file is, and the digests of both parts. docs/format.md has the table of offsets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "holdfast/base/digest.h"

namespace holdfast::format {

inline constexpr std::size_t kUserBlockBytes = 512;

struct UserBlock {
  std::uint64_t file_bytes = 0;  // of the whole file, these 512 included
  Digest content;                // of the bytes from 512 on
};

std::array<std::byte, kUserBlockBytes> encode(const UserBlock& block);

// `head` is the file's beginning, as far as it goes, `actual_bytes` the file's size; `path` is named in errors. Throws
// Error{invalid_file} unless the block is undamaged and of a file of this size, Error{unsupported} for another format
// version.
UserBlock decode_user_block(const std::string& path, std::span<const std::byte> head, std::uint64_t actual_bytes);

}  // namespace holdfast::format
