// Folders on disk, and renames that fail as a test says.

#include "run_directory/folder_renames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FolderRenames : public ::testing::Test {
 protected:
  FolderRenames() {
    for (const char* name : {"a", "b", "c"}) {
      fs::create_directory(std::string(folder_ / name));
      renames_.push_back({.from = folder_ / name, .to = folder_ / (std::string(name) + ".1")});
    }
  }

  // Renames from these names fail.
  RenameResult rename_except(const std::set<std::string>& failing) {
    return rename_all(renames_, [&](const FolderRename& rename) {
      const std::string name = rename.from.filename();
      return failing.contains(name) ? "no " + name : rename_folder(rename);
    });
  }

  const TemporaryFolder folder_;
  std::vector<FolderRename> renames_;
};

TEST_F(FolderRenames, RenameAll) {
  EXPECT_EQ(rename_all(renames_).why, "");

  EXPECT_THAT(folder_.names(), ElementsAre("a.1", "b.1", "c.1"));
}

TEST_F(FolderRenames, NeverReplaceAFolder) {
  fs::create_directory(std::string(folder_ / "b.1"));

  const RenameResult result = rename_all(renames_);

  EXPECT_THAT(result.why, HasSubstr("File exists"));
  EXPECT_TRUE(result.is_undone);
  EXPECT_THAT(folder_.names(), ElementsAre("a", "b", "b.1", "c"));
}

// The failure to go back replaced the first failure, and all other folders kept the wrong name.
TEST_F(FolderRenames, GiveTheOthersTheirNamesBackWhereOneCannotGoBack) {
  const RenameResult result = rename_except({"c", "b.1"});

  EXPECT_THAT(result.why, StartsWith((folder_ / "c") + " cannot be renamed: no c; "));
  EXPECT_THAT(result.why,
              HasSubstr((folder_ / "b") + " has become " + (folder_ / "b.1") + " and cannot be renamed back"));
  EXPECT_FALSE(result.is_undone) << "other advice would contradict that of the sentence";
  EXPECT_THAT(folder_.names(), ElementsAre("a", "b.1", "c"));
}

}  // namespace
}  // namespace holdfast::recovery
