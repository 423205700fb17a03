// Writes each record of a ZIP archive from a plain struct, so that a test can set any field to any value.

#include "unit/exchange/support/zip_builder.h"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace holdfast::format::testing {
namespace {

std::string little_endian(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string u16(std::uint64_t value) {
  return little_endian(value, 2);
}
std::string u32(std::uint64_t value) {
  return little_endian(value, 4);
}
std::string u64(std::uint64_t value) {
  return little_endian(value, 8);
}

constexpr std::uint64_t kFull = 0xFFFF'FFFF;

std::string zip64_field(const std::string& numbers) {
  return u16(1) + u16(numbers.size()) + numbers;
}

MemberFields fields_of(const BuiltMember& member, const std::string& data) {
  return {.size = member.content.size(),
          .stored = data.size(),
          .crc = crc_of(member.content),
          .flags = static_cast<std::uint16_t>(member.descriptor == Descriptor::none ? 0 : 8),
          .method = static_cast<std::uint16_t>(member.is_deflated ? 8 : 0),
          .name = member.name,
          .extra = ""};
}

std::string local_header(const BuiltMember& member, MemberFields fields) {
  if (member.descriptor != Descriptor::none) fields.crc = 0, fields.size = 0, fields.stored = 0;
  if (member.has_zip64) {
    fields.extra += zip64_field(u64(fields.size) + u64(fields.stored));
    fields.size = fields.stored = kFull;
  }
  if (member.change_local) member.change_local(fields);
  return "PK\3\4" + u16(20) + u16(fields.flags) + u16(fields.method) + u32(0) + u32(fields.crc) + u32(fields.stored) +
         u32(fields.size) + u16(fields.name.size()) + u16(fields.extra.size()) + fields.name + fields.extra;
}

std::string directory_entry(const BuiltMember& member, MemberFields fields, std::uint64_t offset) {
  if (member.has_zip64) {
    // A field of another kind comes first, as some tools write it.
    fields.extra += u16(0x5455) + u16(1) + "x" + zip64_field(u64(fields.size) + u64(fields.stored) + u64(offset));
    fields.size = fields.stored = offset = kFull;
  }
  if (member.change_directory) member.change_directory(fields);
  return "PK\1\2" + u16(20) + u16(20) + u16(fields.flags) + u16(fields.method) + u32(0) + u32(fields.crc) +
         u32(fields.stored) + u32(fields.size) + u16(fields.name.size()) + u16(fields.extra.size()) + u16(0) + u16(0) +
         u16(0) + u32(0) + u32(offset) + fields.name + fields.extra;
}

std::string descriptor_of(const BuiltMember& member, const MemberFields& fields) {
  const bool is_wide = member.descriptor == Descriptor::wide || member.descriptor == Descriptor::wide_with_signature;
  const bool has_signature =
      member.descriptor == Descriptor::with_signature || member.descriptor == Descriptor::wide_with_signature;
  if (member.descriptor == Descriptor::none) return "";
  const unsigned bytes = is_wide ? 8 : 4;
  return (has_signature ? "PK\7\10" : "") + u32(fields.crc) + little_endian(fields.stored, bytes) +
         little_endian(fields.size, bytes);
}

std::string end_of(const BuiltArchive& archive, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t count = archive.count.value_or(archive.members.size());
  const std::uint64_t said_offset = offset + archive.directory_offset_error;
  std::string end;
  if (archive.end != BuiltArchive::End::narrow) {
    end += "PK\6\6" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(count) + u64(count) + u64(bytes) +
           u64(said_offset);
    end += "PK\6\7" + u32(0) + u64(offset + bytes) + u32(1);
  }
  const bool is_full = archive.end == BuiltArchive::End::full;
  end += "PK\5\6" + u16(0) + u16(0) + u16(is_full ? kFull : count) + u16(is_full ? kFull : count);
  end += u32(is_full ? kFull : bytes) + u32(is_full ? kFull : said_offset);
  return end + u16(archive.comment.size()) + archive.comment;
}

}  // namespace

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string deflated(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate did not end");
  return out;
}

std::uint32_t crc_of(std::string_view text) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

std::vector<std::byte> build(const BuiltArchive& archive) {
  std::string file = archive.prefix;
  std::string directory;
  for (const BuiltMember& member : archive.members) {
    const std::string data = member.is_deflated ? deflated(member.content) : member.content;
    const MemberFields fields = fields_of(member, data);
    directory += directory_entry(member, fields, member.offset.value_or(file.size()));
    file += local_header(member, fields) + data + descriptor_of(member, fields);
  }
  file += archive.gap;
  const std::uint64_t offset = file.size();
  file += directory;
  return bytes_of(file + end_of(archive, offset, directory.size()));
}

}  // namespace holdfast::format::testing
