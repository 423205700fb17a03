// The model of a disk is tested too: one that never loses anything would let every test of power cuts pass.

#include "support/disks/crash_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace holdfast {
namespace {

std::vector<std::byte> content_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Runs `program` on a disk that contains `before`. Returns everything that may be found if the power fails after the
// last operation, each as "path=content path=content".
std::set<std::string> outcomes(const FileContents& before, const std::function<void(FileSystem&)>& program) {
  MemoryFileSystem memory(before);
  OperationRecorder recorder(memory);
  program(recorder.files());
  CrashDisk disk(before);
  for (const DiskOperation& operation : recorder.operations()) disk.apply(operation);

  std::set<std::string> found;
  CrashDisk::Random random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (const auto& [path, bytes] : disk.after_power_cut(random)) {
      const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      text += (text.empty() ? "" : " ") + path.substr(path.rfind('/') + 1) + "=" + content;
    }
    found.insert(text);
  }
  return found;
}

using Outcomes = std::set<std::string>;
const FileContents kOld = {{"/d/a", content_of("old")}};

void write(FileSystem& files, const std::string& path, const std::string& text) {
  files.create(path)->write_at(0, content_of(text));
}

TEST(CrashDisk, KeepsWhatWasSynced) {
  const Outcomes found = outcomes(kOld, [](FileSystem& files) {
    const auto file = files.create("/d/b");
    file->write_at(0, content_of("new"));
    file->sync();
    files.sync_folder("/d");
  });

  EXPECT_EQ(found, (Outcomes{"a=old b=new"}));
}

TEST(CrashDisk, MayLoseTheNameOfAFileThatWasSynced) {
  const Outcomes found = outcomes(kOld, [](FileSystem& files) {
    const auto file = files.create("/d/b");
    file->write_at(0, content_of("new"));
    file->sync();
  });

  EXPECT_EQ(found, (Outcomes{"a=old", "a=old b=new"}));
}

TEST(CrashDisk, MayLoseTheBytesOfAFileWhoseFolderWasSynced) {
  const Outcomes found = outcomes({{"/d/a", {}}}, [](FileSystem& files) {
    write(files, "/d/b", "new");
    files.sync_folder("/d");
  });

  EXPECT_TRUE(found.contains("a= b="));
  EXPECT_TRUE(found.contains("a= b=new"));
  EXPECT_TRUE(found.contains(std::string("a= b=\0\0\0", 8)));
  for (const std::string& outcome : found) EXPECT_TRUE(outcome.size() == 5 || outcome.size() == 8) << outcome;
}

TEST(CrashDisk, ReplacesInOneStepButMayKeepBothNames) {
  const Outcomes found = outcomes(kOld, [](FileSystem& files) {
    const auto file = files.create("/d/b");
    file->write_at(0, content_of("new"));
    file->sync();
    files.rename("/d/b", "/d/a");
  });

  EXPECT_EQ(found, (Outcomes{"a=old", "a=old b=new", "a=new", "a=new b=new"}));
}

TEST(CrashDisk, KeepsARenameAfterASyncOfItsFolder) {
  const Outcomes found = outcomes(kOld, [](FileSystem& files) {
    files.rename("/d/a", "/d/b");
    files.sync_folder("/d");
  });

  EXPECT_EQ(found, Outcomes{"b=old"});
}

TEST(CrashDisk, MayBringBackWhatWasRemovedUntilTheFolderIsSynced) {
  EXPECT_EQ(outcomes(kOld, [](FileSystem& files) { files.remove("/d/a"); }), (Outcomes{"", "a=old"}));
  EXPECT_EQ(outcomes(kOld,
                     [](FileSystem& files) {
                       files.remove("/d/a");
                       files.sync_folder("/d");
                     }),
            Outcomes{""});
}

TEST(CrashDisk, MayKeepOnlyTheLaterOfTwoChangesOfDifferentFiles) {
  const FileContents two = {{"/d/a", content_of("1")}, {"/d/b", content_of("2")}};
  const Outcomes found = outcomes(two, [](FileSystem& files) {
    files.remove("/d/a");
    files.remove("/d/b");
  });

  EXPECT_EQ(found, (Outcomes{"", "b=2", "a=1", "a=1 b=2"}));
}

TEST(CrashDisk, KeepsChangesOfOneNameInOrder) {
  const Outcomes found = outcomes(kOld, [](FileSystem& files) {
    files.rename("/d/a", "/d/b");
    files.remove("/d/b");
  });

  for (const std::string& outcome : found) {
    EXPECT_TRUE((Outcomes{"a=old", "b=old", "", "a=old b=old"}).contains(outcome)) << outcome;
  }
  EXPECT_TRUE(found.contains(""));
}

TEST(CrashDisk, SyncsOnlyTheGivenFolder) {
  const FileContents two = {{"/d/a", content_of("1")}, {"/e/b", content_of("2")}};
  const Outcomes found = outcomes(two, [](FileSystem& files) {
    files.remove("/d/a");
    files.remove("/e/b");
    files.sync_folder("/d");
  });

  EXPECT_EQ(found, (Outcomes{"", "b=2"}));
}

TEST(CrashDisk, TearsWritesAtSectors) {
  const std::string text(1500, 'x');
  MemoryFileSystem memory(FileContents{{"/d/a", {}}});
  OperationRecorder recorder(memory);
  write(recorder.files(), "/d/b", text);
  CrashDisk disk(FileContents{{"/d/a", {}}});
  for (const DiskOperation& operation : recorder.operations()) disk.apply(operation);

  CrashDisk::Random random(7);
  std::set<std::string> found;
  for (int i = 0; i < 2000; ++i) {
    const FileContents left = disk.after_power_cut(
        {.names = CrashDisk::Names::all_kept, .data = CrashDisk::Data::any_kept, .keeps_length = true}, random);
    const std::vector<std::byte>& bytes = left.at("/d/b");
    ASSERT_EQ(bytes.size(), text.size());
    std::string sectors;
    for (std::size_t begin = 0; begin < bytes.size(); begin += 512) {
      const auto end = std::min<std::size_t>(begin + 512, bytes.size());
      const auto kept = std::count(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                   bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{'x'});
      ASSERT_TRUE(kept == 0 || kept == static_cast<std::ptrdiff_t>(end - begin)) << kept;
      sectors += kept == 0 ? '-' : 'x';
    }
    found.insert(sectors);
  }

  EXPECT_EQ(found.size(), 8U);
}

TEST(CrashDisk, GivesTheSameFilesForTheSameDraw) {
  CrashDisk disk(FileContents{{"/d/a", {}}});
  disk.apply({.operation = {.name = "create", .path = "/d/b"}, .content = {}});
  disk.apply({.operation = {.name = "write", .path = "/d/b"}, .content = std::vector<std::byte>(5000, std::byte{1})});

  CrashDisk::Random first(3);
  CrashDisk::Random second(3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(disk.after_power_cut(first), disk.after_power_cut(second));
}

}  // namespace
}  // namespace holdfast
