// Checks the header in the order of docs/format.md, so that each kind of problem has a sentence of its own:
// not our file, cut off, damaged, another version, another length. Version 1 was never released and is not
// read (docs/decisions/savepoint-file.md).

#include "container/user_block.h"

#include <fmt/format.h>

#include <cstring>

#include "container/byte_order.h"
#include "container/index.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// Built like PNG's: a byte above 127 and both kinds of line end, so that a transfer as text is noticed.
constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'H', 'L', 'D', '\r', '\n', 0x1A, '\n'};
constexpr std::array<std::uint8_t, 8> kHdf5Magic = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};

// As in the table of docs/format.md. The bytes in between are zero.
constexpr std::size_t kVersionOffset = 8;
constexpr std::size_t kFileBytesOffset = 16;
constexpr std::size_t kIndexOffsetOffset = 24;
constexpr std::size_t kIndexBytesOffset = 32;
constexpr std::size_t kIndexDigestOffset = 40;
constexpr std::size_t kBlockDigestOffset = kUserBlockBytes - sizeof(Digest::bytes);

bool begins_with(std::span<const std::byte> bytes, const std::array<std::uint8_t, 8>& magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, fmt::format("{} {}", path, problem));
}

constexpr const char* kUseAnother = "use another savepoint or a copy of this one";

}  // namespace

std::array<std::byte, kUserBlockBytes> encode(const UserBlock& block) {
  std::array<std::byte, kUserBlockBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put(bytes, kVersionOffset, kFormatVersion);
  put(bytes, kFileBytesOffset, block.file_bytes);
  put(bytes, kIndexOffsetOffset, block.index_offset);
  put(bytes, kIndexBytesOffset, block.index_bytes);
  put(bytes, kIndexDigestOffset, block.index_digest);
  // The digest is the last field: it covers everything before it.
  put(bytes, kBlockDigestOffset, digest(std::span(bytes).first(kBlockDigestOffset)));
  return bytes;
}

// The magic number is enough: a damaged file of ours must be reported as damaged, not as foreign.
bool begins_as_array_file(std::span<const std::byte> head) {
  return begins_with(head, kMagic);
}

UserBlock decode_user_block(const std::string& path, std::span<const std::byte> head, std::uint64_t actual_bytes) {
  if (begins_with(head, kHdf5Magic)) {
    fail(path, "is an HDF5 file without the header that Holdfast writes; give a file that Holdfast wrote");
  }
  if (head.size() >= kMagic.size() && !begins_with(head, kMagic)) {
    fail(path, "is not a Holdfast file, or its first bytes are damaged; give a file that Holdfast wrote");
  }
  if (head.size() < kUserBlockBytes) {
    fail(path, fmt::format("has {} bytes, fewer than the {} of a Holdfast file's header: it is cut off; {}",
                           actual_bytes, kUserBlockBytes, kUseAnother));
  }
  // Every version has this digest at this offset, so damage is never taken for another version.
  if (digest(head.first(kBlockDigestOffset)) != take_digest(head, kBlockDigestOffset)) {
    fail_damaged(path, "its header does not have the digest that it contains");
  }
  const auto version = take<std::uint32_t>(head, kVersionOffset);
  if (version != kFormatVersion) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} has format version {}, and this Holdfast reads version {}; {}", path, version, kFormatVersion,
                    version < kFormatVersion ? "version 1 was never released: read it with the Holdfast that wrote it"
                                             : "use the Holdfast that wrote it or a later one"));
  }
  const auto file_bytes = take<std::uint64_t>(head, kFileBytesOffset);
  if (file_bytes != actual_bytes) {
    fail(path, fmt::format("has {} bytes, and its header says {}: it was cut off or appended to; {}", actual_bytes,
                           file_bytes, kUseAnother));
  }
  const UserBlock block{.file_bytes = file_bytes,
                        .index_offset = take<std::uint64_t>(head, kIndexOffsetOffset),
                        .index_bytes = take<std::uint64_t>(head, kIndexBytesOffset),
                        .index_digest = take_digest(head, kIndexDigestOffset)};
  // Compared by a difference: a sum of two numbers from a file could overflow.
  if (block.index_offset < kDataOffset || block.index_offset > file_bytes ||
      block.index_bytes != file_bytes - block.index_offset) {
    fail_not_allowed(path, "its index does not end where the file does");
  }
  return block;
}

void fail_damaged(const std::string& path, const std::string& problem) {
  fail(path, fmt::format("is damaged: {}; {}", problem, kUseAnother));
}

void fail_not_allowed(const std::string& path, const std::string& problem) {
  fail(path, fmt::format("is undamaged but not what the format allows: {}; write it again with Holdfast, or use "
                         "another file",
                         problem));
}

}  // namespace holdfast::format
