// Reads ELF itself: dladdr() knows only exported functions, and addr2line needs binutils on each node. Every number
// from the file is checked before it is used. docs/decisions/processes.md

#include "process/elf_symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace holdfast::recovery {
namespace {

// Programs have about a dozen segments, so a larger number than this is not believed.
constexpr std::size_t kMostSegments = 256;
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 30;
constexpr std::size_t kSymbolsAtOnce = 4096;
// Names of templates may be far longer, and the demangler recurses as deeply as templates are nested.
constexpr std::size_t kMostNameBytes = 1024;
constexpr std::size_t kMostShownBytes = 200;

// The crashed process ran on this machine, so its files have this byte order.
constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;

// A name of C stays as it is. The demangler would take "f" for the code of a type, and call the function "float".
std::string readable(const std::string& name) {
  int status = -1;
  std::unique_ptr<char, decltype(&std::free)> text(nullptr, &std::free);
  if (name.starts_with("_Z")) text.reset(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  std::string shown = status == 0 && text != nullptr ? text.get() : name;
  // A line of the log has to stay readable.
  if (shown.size() > kMostShownBytes) shown = shown.substr(0, kMostShownBytes) + "...";
  return shown;
}

}  // namespace

std::optional<ElfFile> ElfFile::open(const std::string& path) {
  // O_NONBLOCK, because a path with a library's name may be a pipe.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.value(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  ElfFile elf(std::move(file), status.st_ctime);
  if (!elf.read_headers()) return std::nullopt;
  return elf;
}

bool ElfFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > static_cast<std::uint64_t>(INT64_MAX) - bytes) return false;
  // The file may have become shorter meanwhile, so a short read counts as unreadable.
  return ::pread(file_.value(), to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

bool ElfFile::read_headers() {
  Elf64_Ehdr header{};
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder) return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMostSegments) return false;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read(header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) segments_.push_back({segment.p_offset, segment.p_filesz, segment.p_vaddr});
  }
  // A completely stripped file has no sections.
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return true;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  // Addresses need the segments alone. They help a reader also where no function has a name.
  if (!read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return true;
  for (const Elf64_Word type : {SHT_DYNSYM, SHT_SYMTAB}) {  // the second table has more
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != type || section.sh_link >= sections.size()) continue;
      const Elf64_Shdr& names = sections[section.sh_link];
      table_ = {section.sh_offset, std::min<std::uint64_t>(section.sh_size, kMostTableBytes), names.sh_offset,
                names.sh_size};
    }
  }
  return true;
}

std::uint64_t ElfFile::build_address_of(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_) {
    if (file_offset < segment.file_offset || file_offset - segment.file_offset >= segment.bytes) continue;
    return segment.build_address + (file_offset - segment.file_offset);
  }
  // In no segment: the address in the file is the best that is known.
  return file_offset;
}

std::string ElfFile::name_at(const Table& table, std::uint64_t offset) const {
  if (offset >= table.names_bytes) return {};
  std::array<char, kMostNameBytes> bytes{};
  const std::size_t room = std::min<std::uint64_t>(bytes.size(), table.names_bytes - offset);
  if (table.names_offset > UINT64_MAX - offset || !read(table.names_offset + offset, bytes.data(), room)) return {};
  const auto end = std::find(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(room), '\0');
  return {bytes.begin(), end};
}

std::vector<Symbol> ElfFile::find(std::span<const std::uint64_t> file_offsets, Deadline deadline) const {
  std::vector<Symbol> found;
  for (const std::uint64_t offset : file_offsets) found.push_back({.build_address = build_address_of(offset)});
  if (!table_) return found;
  std::vector<std::optional<Elf64_Sym>> best(found.size());
  // The table is read piece by piece, because that of a large program may have hundreds of megabytes.
  std::vector<Elf64_Sym> symbols;
  const std::uint64_t count = table_->bytes / sizeof(Elf64_Sym);
  for (std::uint64_t first = 0; first < count && !deadline.has_passed(); first += symbols.size()) {
    symbols.resize(std::min<std::uint64_t>(kSymbolsAtOnce, count - first));
    // The size is bounded by kMostTableBytes, so after this check no position in the table wraps around.
    if (table_->offset > UINT64_MAX - kMostTableBytes) break;
    // The names that were found before a failed read, or before the deadline, are still of use.
    if (!read(table_->offset + first * sizeof(Elf64_Sym), symbols.data(), symbols.size() * sizeof(Elf64_Sym))) break;
    for (const Elf64_Sym& symbol : symbols) {
      // An undefined symbol belongs to a function in another file.
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const std::uint64_t address = found[i].build_address;
        // A symbol without a size matches nothing: a missing name is better than a wrong one.
        if (address >= symbol.st_value && address - symbol.st_value < symbol.st_size) best[i] = symbol;
      }
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (best[i]) found[i].function = readable(name_at(*table_, best[i]->st_name));
  }
  return found;
}

}  // namespace holdfast::recovery
