// What the hosts of a run leave in its run directory.

#include "agents/hosts_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

TEST(HostsFolder, HasAFolderForEachHost) {
  EXPECT_EQ(folder_of_host("/a/run", 2), "/a/run/hosts/2");
}

TEST(HostsFolder, IsMadeWithTheRunDirectory) {
  const TemporaryFolder folder;

  create_hosts_folder(folder / "run");
  create_hosts_folder(folder / "run");

  EXPECT_TRUE(is_there(folder / "run/hosts"));
}

TEST(HostsFolder, CannotBeMadeInAFile) {
  const TemporaryFolder folder;
  std::ofstream(folder / "run") << "a file";

  EXPECT_THROW(create_hosts_folder(folder / "run"), Error);
}

TEST(HostsFolder, GivesBackWhatWasWrittenAndNothingForWhatCannotBeRead) {
  const TemporaryFolder folder;

  write_text(folder / "text", "what was written");

  EXPECT_EQ(text_in(folder / "text"), "what was written");
  EXPECT_EQ(text_in(folder / "none"), "");
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(text_in(folder / "folder"), "");
}

}  // namespace
}  // namespace holdfast::recovery
