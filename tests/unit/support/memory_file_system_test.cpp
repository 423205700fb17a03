#include "support/disks/memory_file_system.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/text_bytes.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

TEST(MemoryFileSystem, ReadsBackWhatItWrote) {
  MemoryFileSystem files;
  files.create_folders("/d/e");
  const auto file = files.create("/d/e/a");
  file->write_at(2, bytes_of("xyz"));

  std::string text(9, ' ');
  EXPECT_EQ(files.open_for_reading("/d/e/a")->read_at(1, std::as_writable_bytes(std::span(text))), 4U);
  EXPECT_EQ(text.substr(0, 4), std::string("\0xyz", 4));
  EXPECT_EQ(file->size_bytes(), 5U);
}

TEST(MemoryFileSystem, ListsOneFolder) {
  MemoryFileSystem files(FileContents{{"/d/b", {}}, {"/d/a", {}}, {"/d/e/c", {}}, {"/f", {}}});

  EXPECT_EQ(files.list("/d"), (std::vector<std::string>{"a", "b", "e"}));
  EXPECT_EQ(files.list("/"), (std::vector<std::string>{"d", "f"}));
  EXPECT_EQ(code_thrown_by([&] { files.list("/none"); }), ErrorCode::not_found);
}

TEST(MemoryFileSystem, KeepsOpenFilesReadableWhenRenamedOrRemoved) {
  MemoryFileSystem files(FileContents{{"/a", {std::byte{1}}}, {"/b", {std::byte{2}}}});
  const auto replaced = files.open_for_reading("/b");

  files.rename("/a", "/b");

  std::byte byte{};
  EXPECT_EQ(replaced->read_at(0, std::span(&byte, 1)), 1U);
  EXPECT_EQ(byte, std::byte{2});
  EXPECT_EQ(files.contents(), (FileContents{{"/b", {std::byte{1}}}}));
  files.remove("/b");
  EXPECT_FALSE(files.exists("/b"));
}

TEST(MemoryFileSystem, FailsAsTheSystemDoes) {
  MemoryFileSystem files(FileContents{{"/a", {}}});

  EXPECT_EQ(code_thrown_by([&] { files.create("/a"); }), ErrorCode::input_output);
  EXPECT_EQ(code_thrown_by([&] { files.create("/none/a"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files.open_for_reading("/b"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files.remove("/b"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files.rename("/b", "/c"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files.sync_folder("/none"); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files.open_for_reading("/a")->write_at(0, bytes_of("x")); }), ErrorCode::input_output);
}

}  // namespace
}  // namespace holdfast
