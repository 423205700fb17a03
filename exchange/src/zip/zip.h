#pragma once

// Reads and writes ZIP archives as far as .npz and .keras files need them (PKWARE's APPNOTE 6.3): stored or deflated
// members, ZIP64, data descriptors. Nothing is ever unpacked to disk.
//
// An archive may come from anybody, so it is checked strictly. Every record lies where the others say, members do not
// overlap, each name occurs once and is a relative path without "..", and each CRC-32 matches. Encrypted members,
// archives in several volumes and other compression methods are refused by name. So is a member, or a whole archive,
// that claims more than 4 GiB and more than 100 times its compressed size, before any memory is allocated.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bytes/byte_source.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/whole_writer.h"

namespace holdfast::format {

struct ZipMember {
  std::string name;
  std::vector<std::byte> bytes;
};

// Returns all members in the order of the archive's directory, without folders. Throws Error{invalid_file} for
// damaged or hostile content, Error{unsupported} for features that this reader lacks, and what the file system threw.
std::vector<ZipMember> read_zip(FileSystem& files, const std::string& path);
std::vector<ZipMember> read_zip(ByteSource& source);

// Writes the members uncompressed and with a fixed time, so that equal members give equal bytes. The file is written
// completely or not at all, and is durable on return. Throws Error{invalid_argument} for a name that read_zip would
// refuse, or that occurs twice.
void write_zip(FileSystem& files, const std::string& path, std::span<const ZipMember> members);

struct ZipEntry {
  std::string name;
  std::uint64_t size_bytes = 0;    // uncompressed
  std::uint64_t stored_bytes = 0;  // in the archive
  std::uint64_t data_offset = 0;   // of the stored bytes
  std::uint32_t crc = 0;           // of the uncompressed bytes
  bool is_deflated = false;
};

// Reads members one at a time. One thread at a time may use it.
class ZipReader {
 public:
  // Reads and checks all records of the archive, but not the members' content. `source` must outlive the reader.
  explicit ZipReader(ByteSource& source);

  // In the order of the directory, without folders.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::vector<std::byte> read(const ZipEntry& entry) const;
  // Reads into `out`, which must have exactly the member's size.
  void read_into(const ZipEntry& entry, std::span<std::byte> out) const;
  // Calls `take` with the content in pieces of at most 1 MiB, in order. Damage may be found only after the last
  // piece.
  void read_pieces(const ZipEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const;
  // Returns the first bytes of a member, at most `most`. Their CRC-32 is not checked.
  std::vector<std::byte> read_start(const ZipEntry& entry, std::size_t most) const;

 private:
  // Calls `take` until it returns false, and then returns false.
  bool feed(const ZipEntry& entry, const std::function<bool(std::span<const std::byte>)>& take) const;

  ByteSource& source_;
  std::vector<ZipEntry> entries_;
};

// Writes members one at a time, so that they are never copied together.
class ZipWriter {
 public:
  // From these sizes, offsets and counts on, ZIP64's records are written. Only tests set lower values.
  struct Limits {
    std::uint64_t bytes = 0xFFFF'FFFF;
    std::uint64_t members = 0xFFFF;
  };

  ZipWriter(FileSystem& files, const std::string& path) : ZipWriter(files, path, Limits{}) {}
  ZipWriter(FileSystem& files, const std::string& path, const Limits& limits);

  // Writes a member whose content is all pieces in order.
  void add(const std::string& name, std::span<const std::span<const std::byte>> pieces);
  void commit();

 private:
  struct Written {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t offset;  // of its local header
    std::uint32_t crc;
  };

  std::vector<std::byte> local_header(const Written& member) const;
  std::vector<std::byte> directory() const;
  std::vector<std::byte> end(std::uint64_t directory_bytes) const;

  WholeWriter writer_;
  Limits limits_;
  std::vector<Written> members_;
  std::set<std::string> names_;
};

// Says why `name` cannot be a member's name ("is an absolute path"); empty when it can.
std::string problem_of_member_name(const std::string& name);

}  // namespace holdfast::format
