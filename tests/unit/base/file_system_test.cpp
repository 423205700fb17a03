// posix_file_system() on a real disk. system_calls_test.cpp tests what no real disk does when it is asked to.

#include "holdfast/base/file_system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/text_bytes.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

std::string sentence_thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class PosixFileSystem : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream stream(path(name));
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  const TemporaryFolder folder_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(PosixFileSystem, ReadsBackWhatItWrote) {
  const std::unique_ptr<File> file = files_.create(path("a"));
  file->write_at(0, bytes_of("hold"));
  file->write_at(4, bytes_of("fast"));
  file->sync();

  std::string text(8, ' ');
  EXPECT_EQ(files_.open_for_reading(path("a"))->read_at(0, std::as_writable_bytes(std::span(text))), 8U);

  EXPECT_EQ(text, "holdfast");
  EXPECT_EQ(file->size_bytes(), 8U);
}

TEST_F(PosixFileSystem, LeavesZerosWhereNothingWasWritten) {
  files_.create(path("a"))->write_at(3, bytes_of("x"));

  EXPECT_EQ(read("a"), std::string("\0\0\0x", 4));
}

TEST_F(PosixFileSystem, ReadsFewerBytesOnlyAtTheEnd) {
  write("a", "holdfast");
  const std::unique_ptr<File> file = files_.open_for_reading(path("a"));
  std::string text(6, ' ');
  const auto out = std::as_writable_bytes(std::span(text));

  EXPECT_EQ(file->read_at(2, out), 6U);
  EXPECT_EQ(text, "ldfast");
  EXPECT_EQ(file->read_at(5, out), 3U);
  EXPECT_EQ(text, "astast");
  EXPECT_EQ(file->read_at(8, out), 0U);
  EXPECT_EQ(file->read_at(100, out), 0U);
}

TEST_F(PosixFileSystem, ReadsIntoSeveralPlacesInOrder) {
  write("a", "holdfast");
  const std::unique_ptr<File> file = files_.open_for_reading(path("a"));
  std::string first(3, ' ');
  std::string second(4, ' ');
  const std::vector<std::span<std::byte>> places{
      std::as_writable_bytes(std::span(first)), {}, std::as_writable_bytes(std::span(second))};

  EXPECT_EQ(file->scatter_at(1, places), 7U);
  EXPECT_EQ(first + "|" + second, "old|fast");
  EXPECT_EQ(file->scatter_at(4, places), 4U);
  EXPECT_EQ(first + "|" + second, "fas|tast");
  EXPECT_EQ(file->scatter_at(100, places), 0U);
  EXPECT_EQ(file->scatter_at(0, {}), 0U);
}

// More than one system call takes.
TEST_F(PosixFileSystem, ReadsIntoThousandsOfPlaces) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += static_cast<char>('a' + i % 26);
  write("a", text);
  std::string read(text.size(), ' ');
  std::vector<std::span<std::byte>> places;
  for (char& character : read) places.push_back(std::as_writable_bytes(std::span(&character, 1)));

  EXPECT_EQ(files_.open_for_reading(path("a"))->scatter_at(0, places), text.size());

  EXPECT_EQ(read, text);
}

TEST_F(PosixFileSystem, TreatsStartReadingAsAHintForAnyRange) {
  write("a", "holdfast");
  const std::unique_ptr<File> file = files_.open_for_reading(path("a"));
  std::vector<std::byte> out(8);

  file->start_reading(2, 3);
  file->start_reading(100, 1);
  file->start_reading(~std::uint64_t{0}, ~std::uint64_t{0});

  EXPECT_EQ(file->read_at(0, out), 8U);
}

TEST_F(PosixFileSystem, ReadsInAnyOrderAfterTheHintOfOne) {
  write("a", "holdfast");
  const std::unique_ptr<File> file = files_.open_for_reading(path("a"));
  std::vector<std::byte> end(4), begin(4);

  file->expect_reads_in_order();

  EXPECT_EQ(file->read_at(4, end), 4U);
  EXPECT_EQ(file->read_at(0, begin), 4U);
  EXPECT_EQ(end, std::vector<std::byte>({std::byte{'f'}, std::byte{'a'}, std::byte{'s'}, std::byte{'t'}}));
  EXPECT_EQ(begin, std::vector<std::byte>({std::byte{'h'}, std::byte{'o'}, std::byte{'l'}, std::byte{'d'}}));
}

TEST_F(PosixFileSystem, RefusesToCreateAFileThatExists) {
  write("a", "old");

  EXPECT_EQ(code_thrown_by([&] { files_.create(path("a")); }), ErrorCode::input_output);
  EXPECT_EQ(read("a"), "old");
}

TEST_F(PosixFileSystem, NamesThePathThatIsMissing) {
  EXPECT_EQ(code_thrown_by([&] { files_.open_for_reading(path("none")); }), ErrorCode::not_found);
  EXPECT_EQ(sentence_thrown_by([&] { files_.open_for_reading(path("none")); }),
            "cannot open " + path("none") +
                ": No such file or directory; check the path, which counts from the current folder if it is relative");
  EXPECT_EQ(code_thrown_by([&] { files_.create(path("none/a")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files_.remove(path("none")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files_.rename(path("none"), path("b")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files_.sync_folder(path("none")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { files_.list(path("none")); }), ErrorCode::not_found);
}

// The system would open it, and the first read would fail with a sentence about bytes.
TEST_F(PosixFileSystem, RefusesToOpenAFolderForReading) {
  const std::string sentence = sentence_thrown_by([&] { files_.open_for_reading(folder_.path()); });

  EXPECT_EQ(sentence, "cannot open " + folder_.path() +
                          ": it is a folder, not a regular file; give another path, or move it away");
}

// A FIFO with the name of a savepoint hung each replica that looked for the newest savepoint, and
// `holdfast inspect` too.
TEST_F(PosixFileSystem, DoesNotWaitForAWriterOfAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);

  EXPECT_EQ(code_thrown_by([&] { files_.open_for_reading(path("fifo")); }), ErrorCode::invalid_file);
}

TEST_F(PosixFileSystem, ReportsAWriteThatTheSystemCutsShort) {
  // The system writes up to the limit, which is a short write, and then fails.
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 100, .rlim_max = old_limit.rlim_max};
  const std::unique_ptr<File> file = files_.create(path("a"));

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string sentence = sentence_thrown_by([&] { file->write_at(10, bytes_of(std::string(200, 'x'))); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(sentence, "cannot write 110 bytes at offset 100 of " + path("a") +
                          ": File too large; raise the limit of a file's size (ulimit -f), which shared memory obeys "
                          "too, or choose a file system that takes larger files");
  EXPECT_EQ(file->size_bytes(), 100U);
}

TEST_F(PosixFileSystem, ReplacesInOneStepWhenRenaming) {
  write("a", "new");
  write("b", "old");

  files_.rename(path("a"), path("b"));
  files_.sync_folder(folder_.path());

  EXPECT_EQ(read("b"), "new");
  EXPECT_FALSE(files_.exists(path("a")));
}

TEST_F(PosixFileSystem, RemovesFilesButNotFolders) {
  write("a", "x");
  std::filesystem::create_directory(path("folder"));

  files_.remove(path("a"));

  EXPECT_FALSE(files_.exists(path("a")));
  EXPECT_EQ(code_thrown_by([&] { files_.remove(path("folder")); }), ErrorCode::refused);
  EXPECT_TRUE(files_.exists(path("folder")));
}

TEST_F(PosixFileSystem, ListsNamesInOrder) {
  for (const char* name : {"b", "a", ".hidden", "c"}) write(name, "x");
  std::filesystem::create_directory(path("folder"));

  EXPECT_EQ(files_.list(folder_.path()), (std::vector<std::string>{".hidden", "a", "b", "c", "folder"}));
  EXPECT_TRUE(files_.list(path("folder")).empty());
  EXPECT_EQ(code_thrown_by([&] { files_.list(path("a")); }), ErrorCode::refused);
}

TEST_F(PosixFileSystem, FindsFilesAndFolders) {
  write("a", "x");

  EXPECT_TRUE(files_.exists(path("a")));
  EXPECT_TRUE(files_.exists(folder_.path()));
  EXPECT_FALSE(files_.exists(path("b")));
  EXPECT_FALSE(files_.exists(path("a/b")));
}

TEST_F(PosixFileSystem, CreatesFoldersWithTheirParents) {
  files_.create_folders(path("x/y/z"));
  files_.create_folders(path("x/y/z"));
  files_.create_folders(path("x/y/w/"));

  EXPECT_TRUE(std::filesystem::is_directory(path("x/y/z")));
  EXPECT_TRUE(std::filesystem::is_directory(path("x/y/w")));
}

TEST_F(PosixFileSystem, RefusesToCreateAFolderBelowAFile) {
  write("a", "x");

  EXPECT_EQ(code_thrown_by([&] { files_.create_folders(path("a/b")); }), ErrorCode::refused);
  EXPECT_EQ(code_thrown_by([&] { files_.create_folders(path("a")); }), ErrorCode::refused);
  EXPECT_EQ(read("a"), "x");
}

TEST(ParentFolder, IsTheFolderThatContainsThePath) {
  EXPECT_EQ(parent_folder("a/b/c.h5"), "a/b");
  EXPECT_EQ(parent_folder("c.h5"), ".");
  EXPECT_EQ(parent_folder("/c.h5"), "/");
  EXPECT_EQ(parent_folder("a/b/"), "a");
  EXPECT_EQ(parent_folder("a//b"), "a");
  EXPECT_EQ(parent_folder("//b"), "/");
  EXPECT_EQ(parent_folder("/"), "/");
  EXPECT_EQ(parent_folder(""), ".");
}

}  // namespace
}  // namespace holdfast
