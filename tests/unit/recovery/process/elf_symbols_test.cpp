// A small ELF file that the test builds, whole and damaged in many ways.

#include "process/elf_symbols.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/program.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::seconds kTimeToLook(20);

// A file with one segment and one function, "run()" at 0x1010 to 0x1020, which lies at 0x110 in the file.
std::vector<char> small_program() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  header.e_phoff = 0x40;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shoff = 0x200;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  const Elf64_Phdr segment{.p_type = PT_LOAD,
                           .p_flags = PF_X,
                           .p_offset = 0x100,
                           .p_vaddr = 0x1000,
                           .p_paddr = 0,
                           .p_filesz = 0x100,
                           .p_memsz = 0x100,
                           .p_align = 1};
  Elf64_Shdr table{};
  table.sh_type = SHT_SYMTAB;
  table.sh_offset = 0x300;
  table.sh_size = sizeof(Elf64_Sym);
  table.sh_link = 1;
  Elf64_Shdr names{};
  names.sh_type = SHT_STRTAB;
  names.sh_offset = 0x340;
  names.sh_size = 16;
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
  symbol.st_shndx = 1;
  symbol.st_value = 0x1010;
  symbol.st_size = 0x10;
  std::vector<char> bytes(0x350);
  const auto put = [&bytes](std::size_t offset, const auto& what) {
    std::memcpy(bytes.data() + offset, &what, sizeof what);
  };
  put(0, header);
  put(0x40, segment);
  put(0x200, table);
  put(0x200 + sizeof table, names);
  put(0x300, symbol);
  std::memcpy(bytes.data() + 0x341, "_Z3runv", 8);
  return bytes;
}

class ElfFileTest : public testing::Test {
 protected:
  std::optional<ElfFile> file_with(const std::vector<char>& bytes) const {
    std::ofstream(folder_ / "program", std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return ElfFile::open(folder_ / "program");
  }

  const TemporaryFolder folder_;
};

}  // namespace

TEST_F(ElfFileTest, FindsTheFunctionOfAByteOfTheFile) {
  const std::optional<ElfFile> file = file_with(small_program());
  ASSERT_TRUE(file.has_value());

  const std::vector<Symbol> found =
      file->find(std::array<std::uint64_t, 4>{0x110, 0x11F, 0x120, 0x999}, Deadline::after(kTimeToLook));

  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].function, "run()");
  EXPECT_EQ(found[0].build_address, 0x1010U);
  EXPECT_EQ(found[1].function, "run()");
  EXPECT_EQ(found[2].function, "") << "after the function";
  EXPECT_EQ(found[2].build_address, 0x1020U);
  EXPECT_EQ(found[3].function, "") << "after the end of the file";
}

// The demangler reads "f" as the code of the type float.
TEST_F(ElfFileTest, LeavesTheNameOfAFunctionOfC) {
  std::vector<char> bytes = small_program();
  std::memcpy(bytes.data() + 0x341, "f", 2);
  const std::optional<ElfFile> file = file_with(bytes);
  ASSERT_TRUE(file.has_value());

  EXPECT_EQ(file->find(std::array<std::uint64_t, 1>{0x110}, Deadline::after(kTimeToLook))[0].function, "f");
}

TEST_F(ElfFileTest, StopsAtTheDeadline) {
  const std::optional<ElfFile> file = file_with(small_program());
  ASSERT_TRUE(file.has_value());

  const std::vector<Symbol> found = file->find(std::array<std::uint64_t, 1>{0x110}, Deadline::after({}));

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].function, "");
  EXPECT_EQ(found[0].build_address, 0x1010U);
}

TEST_F(ElfFileTest, RefusesFilesThatAreNotElf) {
  EXPECT_FALSE(ElfFile::open(folder_ / "nothing").has_value());
  EXPECT_FALSE(ElfFile::open(folder_.path()).has_value());
  EXPECT_FALSE(file_with({}).has_value());
  EXPECT_FALSE(file_with({'#', '!', '/', 'b', 'i', 'n', '/', 's', 'h', '\n'}).has_value());
}

// No process ever writes into this pipe.
TEST_F(ElfFileTest, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);

  EXPECT_FALSE(ElfFile::open(folder_ / "pipe").has_value());
}

TEST_F(ElfFileTest, ReadsDamagedFilesSafely) {
  const std::vector<char> whole = small_program();
  std::mt19937_64 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::vector<char> damaged = whole;
    for (std::uint64_t k = 0; k <= random() % 8; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());

    const std::optional<ElfFile> file = file_with(damaged);
    if (!file) continue;
    const std::vector<Symbol> found =
        file->find(std::array<std::uint64_t, 2>{0x110, ~std::uint64_t{0}}, Deadline::after(kTimeToLook));

    EXPECT_EQ(found.size(), 2U);
  }
}

}  // namespace holdfast::recovery
