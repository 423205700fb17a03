#pragma once

// Builds ZIP archives byte by byte, valid and invalid ones, without the writer under test.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::format::testing {

std::vector<std::byte> bytes_of(std::string_view text);
std::string text_of(const std::vector<std::byte>& bytes);
// Returns a raw deflate stream, as archives contain it.
std::string deflated(std::string_view text);
std::uint32_t crc_of(std::string_view text);

// The fields of a member's records. Tests change single fields.
struct MemberFields {
  std::uint64_t size = 0;
  std::uint64_t stored = 0;
  std::uint32_t crc = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::string name;
  std::string extra;
};

enum class Descriptor { none, plain, with_signature, wide, wide_with_signature };

struct BuiltMember {
  std::string name;
  std::string content;
  bool is_deflated = false;
  bool has_zip64 = false;  // sizes (in the directory the offset, too) are in ZIP64's field
  Descriptor descriptor = Descriptor::none;
  std::function<void(MemberFields&)> change_local = {};
  std::function<void(MemberFields&)> change_directory = {};
  std::optional<std::uint64_t> offset = {};  // the offset in the directory
};

struct BuiltArchive {
  std::vector<BuiltMember> members;
  std::string prefix = {};
  std::string gap = {};  // bytes between the last member and the directory
  std::string comment = {};
  enum class End { narrow, wide, full } end = End::narrow;  // full: all bits of the narrow record are ones
  std::optional<std::uint64_t> count = {};
  std::uint64_t directory_offset_error = 0;
};

std::vector<std::byte> build(const BuiltArchive& archive);

}  // namespace holdfast::format::testing
