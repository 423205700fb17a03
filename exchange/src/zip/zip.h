#pragma once

// ZIP archives, as far as .npz and .keras files need them (PKWARE's APPNOTE 6.3): members stored or deflated, ZIP64,
// data descriptors. Nothing is ever unpacked to disk.
//
// A stranger's archive is taken strictly: every record is where the others say that it is, members do not overlap, each
// name occurs once and is a relative path without "..", the CRC-32 of every member holds. Encrypted members, archives
// of several volumes and other kinds of compression are refused by name. A member that claims over 4 GiB and over 100
// times its compressed size is refused before memory is taken for it, and so is an archive that does so in sum.

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

// All members in the order of the archive's directory; entries for folders are left out. Throws Error{invalid_file}
// for what is damaged or hostile, Error{unsupported} for what other tools may read, and what the file system threw.
std::vector<ZipMember> read_zip(FileSystem& files, const std::string& path);
std::vector<ZipMember> read_zip(ByteSource& source);

// Stored, with one fixed time: the same members give the same bytes. Whole or not at all, durable on return. Throws
// Error{invalid_argument} for a name that read_zip would refuse, or that occurs twice.
void write_zip(FileSystem& files, const std::string& path, std::span<const ZipMember> members);

struct ZipEntry {
  std::string name;
  std::uint64_t size_bytes = 0;    // uncompressed
  std::uint64_t stored_bytes = 0;  //
  std::uint64_t data_offset = 0;   // of the stored bytes
  std::uint32_t crc = 0;           // of the uncompressed bytes
  bool is_deflated = false;
};

// Reads one member after the other. Not for several threads at once.
class ZipReader {
 public:
  // Reads and checks the directory and all that describes the members, but not their content. `source` must outlive
  // the reader.
  explicit ZipReader(ByteSource& source);

  // In the order of the directory, without folders.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::vector<std::byte> read(const ZipEntry& entry) const;
  // The same into memory of exactly the member's size.
  void read_into(const ZipEntry& entry, std::span<std::byte> out) const;
  // In pieces of at most 1 MiB, in order. Throws for damage, which may be found only after the last piece.
  void read_pieces(const ZipEntry& entry, const std::function<void(std::span<const std::byte>)>& take) const;
  // The first bytes of a member, at most `most`; their CRC-32 is not checked.
  std::vector<std::byte> read_start(const ZipEntry& entry, std::size_t most) const;

 private:
  // `take` says whether it wants more. False when it does not.
  bool feed(const ZipEntry& entry, const std::function<bool(std::span<const std::byte>)>& take) const;

  ByteSource& source_;
  std::vector<ZipEntry> entries_;
};

// Writes one member after the other, so that no copy of them is needed.
class ZipWriter {
 public:
  // Sizes, offsets and counts from here on take ZIP64's records; lower only in tests.
  struct Limits {
    std::uint64_t bytes = 0xFFFF'FFFF;
    std::uint64_t members = 0xFFFF;
  };

  ZipWriter(FileSystem& files, const std::string& path) : ZipWriter(files, path, Limits{}) {}
  ZipWriter(FileSystem& files, const std::string& path, const Limits& limits);

  // The member's content is all pieces, one after the other.
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

// Why `name` is no name for a member ("is an absolute path"); empty when it is one.
std::string problem_of_member_name(const std::string& name);

}  // namespace holdfast::format
