// Writes ZIP archives without compression. Equal members must give equal bytes, so every member gets the same time,
// the same permissions and no optional field. ZIP64's records appear only where 32 bits are too few.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <initializer_list>

#include "holdfast/base/error.h"
#include "zip/zip.h"
#include "zip/zip_records.h"

namespace holdfast::format {
namespace {

// 1980-01-01 00:00, the earliest time that the format can express.
constexpr std::uint16_t kTime = 0;
constexpr std::uint16_t kDate = (1 << 5) | 1;
// Made on Unix by version 4.5 of the format; an ordinary file, readable by all and writable by its owner.
constexpr std::uint16_t kMadeBy = (3 << 8) | 45;
constexpr std::uint32_t kFileAttributes = std::uint32_t{0100644} << 16;

// The version of the format that a reader needs.
constexpr std::uint16_t kVersion = 20;
constexpr std::uint16_t kVersion64 = 45;

// Collects little-endian fields of a record.
class RecordWriter {
 public:
  RecordWriter& u16(std::uint64_t value) { return put(value, 2); }
  RecordWriter& u32(std::uint64_t value) { return put(value, 4); }
  RecordWriter& u64(std::uint64_t value) { return put(value, 8); }
  RecordWriter& text(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  RecordWriter& put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }

  std::vector<std::byte> bytes_;
};

// Fills 32-bit fields, and collects values that do not fit for the ZIP64 extra field.
class WideFields {
 public:
  explicit WideFields(std::uint64_t limit) : limit_(limit) {}

  std::uint64_t field(std::uint64_t value) {
    if (value < limit_) return value;
    extra_.u64(value);
    return zip::kFull32;
  }
  // A local header that holds one size in 64 bits must hold both.
  void add_always(std::uint64_t value) { extra_.u64(value); }

  bool is_used() const { return extra_.size() > 0; }
  std::size_t extra_bytes() const { return is_used() ? 4 + extra_.size() : 0; }
  void append_to(std::vector<std::byte>& record) {
    if (!is_used()) return;
    RecordWriter head;
    head.u16(zip::kExtra64).u16(extra_.size());
    for (const std::vector<std::byte>& part : {head.take(), extra_.take()}) {
      record.insert(record.end(), part.begin(), part.end());
    }
  }

 private:
  std::uint64_t limit_;
  RecordWriter extra_;
};

// Without the flag readers take a name for CP437. Plain ASCII needs none, and older tools like that better.
std::uint16_t flags_of(const std::string& name) {
  const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return (c & 0x80) == 0; });
  return is_ascii ? 0 : zip::kUtf8Flag;
}

// The CRC-32 of all pieces in order, needed before the content because the header precedes it.
std::uint32_t crc_of(std::span<const std::span<const std::byte>> pieces) {
  uLong crc = crc32_z(0, nullptr, 0);
  for (const auto piece : pieces) {
    // zlib starts a new checksum when it gets a null pointer.
    if (!piece.empty()) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

ZipWriter::ZipWriter(FileSystem& files, const std::string& path, const Limits& limits)
    : writer_(files, path), limits_(limits) {}

void ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> pieces) {
  std::string problem = problem_of_member_name(name);
  if (!names_.insert(name).second) problem = "occurs twice";
  if (!problem.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot write {}: the member name {} {}; rename the member",
                                                         writer_.path(), quoted_text(name), problem));
  }
  std::uint64_t bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  // The directory repeats these numbers at the end of the archive.
  members_.push_back({.name = name, .bytes = bytes, .offset = writer_.appended_bytes(), .crc = crc_of(pieces)});
  writer_.append(local_header(members_.back()));
  for (const auto piece : pieces) writer_.append(piece);
}

std::vector<std::byte> ZipWriter::local_header(const Written& member) const {
  WideFields wide(limits_.bytes);
  const std::uint64_t field = wide.field(member.bytes);
  if (wide.is_used()) wide.add_always(member.bytes);
  RecordWriter record;
  record.u32(zip::kLocalHeader).u16(wide.is_used() ? kVersion64 : kVersion);
  record.u16(flags_of(member.name)).u16(zip::kStored).u16(kTime).u16(kDate).u32(member.crc);
  record.u32(field).u32(field).u16(member.name.size()).u16(wide.extra_bytes()).text(member.name);
  std::vector<std::byte> bytes = record.take();
  wide.append_to(bytes);
  return bytes;
}

std::vector<std::byte> ZipWriter::directory() const {
  std::vector<std::byte> directory;
  for (const Written& member : members_) {
    WideFields wide(limits_.bytes);
    const std::uint64_t size = wide.field(member.bytes);
    const std::uint64_t stored = wide.field(member.bytes);
    const std::uint64_t offset = wide.field(member.offset);
    RecordWriter record;
    record.u32(zip::kDirectoryEntry).u16(kMadeBy).u16(wide.is_used() ? kVersion64 : kVersion);
    record.u16(flags_of(member.name)).u16(zip::kStored).u16(kTime).u16(kDate).u32(member.crc);
    record.u32(stored).u32(size).u16(member.name.size()).u16(wide.extra_bytes()).u16(0).u16(0).u16(0);
    record.u32(kFileAttributes).u32(offset).text(member.name);
    const std::vector<std::byte> bytes = record.take();
    directory.insert(directory.end(), bytes.begin(), bytes.end());
    wide.append_to(directory);
  }
  return directory;
}

std::vector<std::byte> ZipWriter::end(std::uint64_t directory_bytes) const {
  // The directory has just been appended, so it begins this far in front of the current end.
  const std::uint64_t start = writer_.appended_bytes() - directory_bytes;
  const std::uint64_t count = members_.size();
  RecordWriter record;
  if (count >= limits_.members || directory_bytes >= limits_.bytes || start >= limits_.bytes) {
    // The length of the record counts from after this field.
    record.u32(zip::kEnd64).u64(zip::kEnd64Bytes - 12).u16(kMadeBy).u16(kVersion64).u32(0).u32(0);
    record.u64(count).u64(count).u64(directory_bytes).u64(start);
    record.u32(zip::kEnd64Locator).u32(0).u64(start + directory_bytes).u32(1);
  }
  const std::uint64_t count_field = count >= limits_.members ? zip::kFull16 : count;
  record.u32(zip::kEnd).u16(0).u16(0).u16(count_field).u16(count_field);
  record.u32(directory_bytes >= limits_.bytes ? zip::kFull32 : directory_bytes);
  record.u32(start >= limits_.bytes ? zip::kFull32 : start).u16(0);
  return record.take();
}

void ZipWriter::commit() {
  const std::vector<std::byte> entries = directory();
  writer_.append(entries);
  writer_.append(end(entries.size()));
  writer_.commit();
}

}  // namespace holdfast::format
