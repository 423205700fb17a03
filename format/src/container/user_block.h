#pragma once

// The 512 bytes in front of the HDF5 part (HDF5 calls such a prefix a user block): which format this is, how long the
// file is, and where the index of everything else is. docs/format.md has the table of offsets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "holdfast/base/digest.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

struct UserBlock {
  std::uint64_t file_bytes = 0;    // of the whole file, these 512 included
  std::uint64_t index_offset = 0;  // the index lies at the end of the file
  std::uint64_t index_bytes = 0;   //
  Digest index_digest;             //
};

std::array<std::byte, kUserBlockBytes> encode(const UserBlock& block);

// Whether `head` begins as every version of the format does.
bool has_array_file_magic(std::span<const std::byte> head);

// `head` is the file's beginning, as far as it goes, `actual_bytes` the file's size; `path` is named in errors. Throws
// Error{invalid_file} unless the block is undamaged and of a file of this size, Error{unsupported} for another format
// version.
UserBlock decode_user_block(const std::string& path, std::span<const std::byte> head, std::uint64_t actual_bytes);

}  // namespace holdfast::format
