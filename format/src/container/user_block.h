#pragma once

// The header: 512 bytes in front of the HDF5 part, which HDF5 calls a user block. It says which format this
// is, how long the file is, and where the index is. docs/format.md has the table of offsets.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "holdfast/base/digest.h"
#include "holdfast/format/array_info.h"

namespace holdfast::format {

struct UserBlock {
  std::uint64_t file_bytes = 0;    // of the whole file, including these 512
  std::uint64_t index_offset = 0;  // the index ends where the file ends
  std::uint64_t index_bytes = 0;
  Digest index_digest;
};

std::array<std::byte, kUserBlockBytes> encode(const UserBlock& block);

// Decodes the first 512 bytes of a file, or fewer when the file is shorter. `actual_bytes` is the file's
// size; `path` is named in errors. Throws Error{invalid_file} unless the header is undamaged and gives
// this size, and Error{unsupported} for another version of the format.
UserBlock decode_user_block(const std::string& path, std::span<const std::byte> head, std::uint64_t actual_bytes);

// Both throw Error{invalid_file}, also for other parts of a file. They name `path`, the problem, and what to do.
[[noreturn]] void fail_damaged(const std::string& path, const std::string& problem);
// For a file whose digests are right: no writer of ours made it.
[[noreturn]] void fail_not_allowed(const std::string& path, const std::string& problem);

}  // namespace holdfast::format
