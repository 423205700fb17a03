// Fault injection is only as good as the file system that injects: an injected failure must act like a real one.

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/watched_file_system.h"
#include "support/temporary_folder.h"
#include "support/text_bytes.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

class WatchedFileSystem : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream stream(path(name));
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  static std::string line(const FileOperation& operation) {
    return operation.name + " " + std::filesystem::path(operation.path).filename().string() + " " +
           std::to_string(operation.offset) + " " + std::to_string(operation.bytes);
  }

  const TemporaryFolder folder_;
  FileSystem& files_ = posix_file_system();
};

TEST_F(WatchedFileSystem, ReportsEveryOperationBeforeItHappens) {
  std::vector<std::string> lines;
  const auto watched =
      watched_file_system(files_, [&](const FileOperation& operation) { lines.push_back(line(operation)); });

  watched->create_folders(path("f"));
  auto file = watched->create(path("a"));
  file->write_at(2, bytes_of("xyz"));
  file->start_write_back(2, 3);
  file->sync();
  std::vector<std::byte> out(4);
  watched->open_for_reading(path("a"))->start_reading(1, 4);
  watched->open_for_reading(path("a"))->expect_reads_in_order();
  watched->open_for_reading(path("a"))->read_at(1, out);
  watched->rename(path("a"), path("b"));
  watched->sync_folder(folder_.path());
  static_cast<void>(watched->list(folder_.path()));
  static_cast<void>(watched->exists(path("b")));
  watched->remove(path("b"));

  const std::string folder = std::filesystem::path(folder_.path()).filename().string();
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "create_folders f 0 0", "create a 0 0", "write a 2 3", "write_back a 2 3", "sync a 0 0", "open a 0 0",
                "read_ahead a 1 4", "open a 0 0", "read_in_order a 0 0", "open a 0 0", "read a 1 4", "rename a 0 0",
                "sync_folder " + folder + " 0 0", "list " + folder + " 0 0", "exists b 0 0", "remove b 0 0"}));
  EXPECT_FALSE(files_.exists(path("b")));
}

TEST_F(WatchedFileSystem, ReportsTheEndOfAnOperationAlsoWhenItFails) {
  std::vector<std::string> lines;
  const auto watched = watched_file_system(
      files_,
      [&](const FileOperation& operation) {
        lines.push_back("before " + line(operation));
        if (operation.name == "list") throw Error(ErrorCode::refused, "not let through");
      },
      [&](const FileOperation& operation) { lines.push_back("after " + line(operation)); });

  watched->create(path("a"))->write_at(2, bytes_of("xyz"));
  EXPECT_EQ(code_thrown_by([&] { watched->remove(path("b")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown_by([&] { static_cast<void>(watched->list(folder_.path())); }), ErrorCode::refused);

  const std::string folder = std::filesystem::path(folder_.path()).filename().string();
  EXPECT_EQ(lines, (std::vector<std::string>{"before create a 0 0", "after create a 0 0", "before write a 2 3",
                                             "after write a 2 3", "before remove b 0 0", "after remove b 0 0",
                                             "before list " + folder + " 0 0"}));
}

TEST_F(WatchedFileSystem, DoesNothingWhenTheWatcherThrows) {
  write("a", "old");
  const auto full = watched_file_system(
      files_, [](const FileOperation& operation) { throw Error(ErrorCode::disk_full, "cannot " + operation.name); });

  EXPECT_EQ(code_thrown_by([&] { full->create(path("b")); }), ErrorCode::disk_full);
  EXPECT_EQ(code_thrown_by([&] { full->remove(path("a")); }), ErrorCode::disk_full);
  EXPECT_EQ(code_thrown_by([&] { full->rename(path("a"), path("c")); }), ErrorCode::disk_full);
  EXPECT_EQ(files_.list(folder_.path()), std::vector<std::string>{"a"});
}

TEST_F(WatchedFileSystem, WritesNothingWhenTheDiskFillsInTheMiddle) {
  const auto full = watched_file_system(files_, [](const FileOperation& operation) {
    if (operation.name == "write" && operation.offset + operation.bytes > 6) {
      throw system_error(ENOSPC, "cannot write " + operation.path);
    }
  });
  const std::unique_ptr<File> file = full->create(path("a"));

  file->write_at(0, bytes_of("hold"));
  EXPECT_EQ(code_thrown_by([&] { file->write_at(4, bytes_of("fast")); }), ErrorCode::disk_full);

  EXPECT_EQ(read("a"), "hold");
}

TEST_F(WatchedFileSystem, LetsAFileOutliveIt) {
  int operations = 0;
  auto watched = watched_file_system(files_, [&](const FileOperation&) { ++operations; });
  const std::unique_ptr<File> file = watched->create(path("a"));
  watched.reset();

  file->write_at(0, bytes_of("x"));

  EXPECT_EQ(operations, 2);
  EXPECT_EQ(read("a"), "x");
}

TEST_F(WatchedFileSystem, ReportsTheContentOfWritesAndTheTargetOfRenames) {
  std::string written;
  std::string new_path;
  const auto watched = watched_file_system(files_, [&](const FileOperation& operation) {
    if (operation.name == "write") written.append(reinterpret_cast<const char*>(operation.content.data()), 4);
    if (operation.name == "rename") new_path = operation.new_path;
  });

  watched->create(path("a"))->write_at(0, bytes_of("hold"));
  watched->rename(path("a"), path("b"));

  EXPECT_EQ(written, "hold");
  EXPECT_EQ(new_path, path("b"));
}

TEST_F(WatchedFileSystem, KeepsAFileDeadAfterTheWatcherFailedItOnce) {
  for (const std::string failing : {"write", "write_back", "sync"}) {
    bool has_failed = false;
    std::vector<std::string> names;
    const auto watched = watched_file_system(files_, [&](const FileOperation& operation) {
      names.push_back(operation.name);
      if (operation.name == failing && !std::exchange(has_failed, true)) throw system_error(EIO, "cannot");
    });
    const std::unique_ptr<File> file = watched->create(path(failing));
    const auto act = [&] {
      file->write_at(0, bytes_of("x"));
      file->start_write_back(0, 1);
      file->sync();
    };
    EXPECT_EQ(code_thrown_by(act), ErrorCode::input_output) << failing;
    names.clear();

    EXPECT_EQ(code_thrown_by([&] { file->sync(); }), ErrorCode::input_output) << failing;
    EXPECT_EQ(code_thrown_by([&] { file->write_at(0, bytes_of("x")); }), ErrorCode::input_output) << failing;

    EXPECT_TRUE(names.empty()) << failing;
  }
}

}  // namespace
}  // namespace holdfast
