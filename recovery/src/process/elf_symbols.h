#pragma once

// Names of functions in an executable or a library, from its own symbol table. It is read with pread(2), piece by
// piece, since the file may change meanwhile; nothing in it is trusted.

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

struct Symbol {
  std::uint64_t build_address = 0;  // of what was asked for, as tools count it: addr2line, objdump
  std::string function{};           // as it is written in the program; empty: not known
};

class ElfFile {
 public:
  // Empty for what is not an ELF file of 64 bits with this machine's byte order, or cannot be read.
  static std::optional<ElfFile> open(const std::string& path);

  std::time_t changed() const { return changed_; }
  // Where each of these bytes of the file is, in their order. Looks for names until the deadline.
  std::vector<Symbol> find(std::span<const std::uint64_t> file_offsets, Deadline deadline) const;

 private:
  struct Segment {
    std::uint64_t file_offset;
    std::uint64_t bytes;
    std::uint64_t build_address;
  };
  struct Table {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint64_t names_offset;
    std::uint64_t names_bytes;
  };

  ElfFile(FileDescriptor file, std::time_t changed) : file_(std::move(file)), changed_(changed) {}

  bool read(std::uint64_t offset, void* to, std::size_t bytes) const;
  bool read_headers();
  std::uint64_t build_address_of(std::uint64_t file_offset) const;
  std::string name_at(const Table& table, std::uint64_t offset) const;

  FileDescriptor file_;
  std::time_t changed_;
  std::vector<Segment> segments_;
  std::optional<Table> table_;
};

}  // namespace holdfast::recovery
