#pragma once

// Finds names of functions in an executable or a library, from its own symbol table. The file is read with pread(2),
// piece by piece, because it may change meanwhile. Nothing in it is trusted.

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
  std::uint64_t build_address = 0;  // the address as tools count it: addr2line, objdump
  std::string function{};           // as written in the program; empty: unknown
};

class ElfFile {
 public:
  // Empty unless it is a readable 64-bit ELF file with this machine's byte order.
  static std::optional<ElfFile> open(const std::string& path);

  std::time_t changed() const { return changed_; }
  // The symbols that contain these bytes of the file, in the same order. Looks for names until the deadline.
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
