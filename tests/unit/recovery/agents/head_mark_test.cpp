// How hosts find out that they share a run directory.

#include "agents/head_mark.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

TEST(HeadMark, IsSeenInTheSameFolderAlone) {
  const TemporaryFolder folder;

  const std::string mark = leave_head_mark(folder / "run").mark;

  EXPECT_TRUE(is_head_mark_there(folder / "run", mark));
  EXPECT_FALSE(is_head_mark_there(folder / "other", mark));
}

TEST(HeadMark, IsAnotherOneAtEachStart) {
  const TemporaryFolder folder;

  const std::string first = leave_head_mark(folder / "run").mark;
  const std::string second = leave_head_mark(folder / "run").mark;

  EXPECT_FALSE(is_head_mark_there(folder / "run", first));
  EXPECT_TRUE(is_head_mark_there(folder / "run", second));
}

TEST(HeadMark, NamesTheRunThatAFolderHoldsWhateverHeadItHas) {
  const TemporaryFolder folder;

  leave_head_mark(folder / "run");
  const std::string run = run_in(folder / "run");
  leave_head_mark(folder / "run");
  leave_head_mark(folder / "other");

  EXPECT_FALSE(run.empty());
  EXPECT_EQ(run_in(folder / "run"), run);
  EXPECT_NE(run_in(folder / "other"), run);
  EXPECT_EQ(run_in(folder / "none"), "");
}

// The folder of a head that has a savepoint.
FolderOfHead head_with_savepoint(const std::string& folder, bool is_begun_anew = false) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/savepoint-0000000004.h5") << "whatever it holds";
  return leave_head_mark(folder, is_begun_anew);
}

TEST(HeadMark, AFolderWithoutARunBecomesOneOfTheHeadsRun) {
  const TemporaryFolder folder;
  const FolderOfHead head = head_with_savepoint(folder / "head");
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/notes.txt") << "no run";

  EXPECT_EQ(take_folder(folder / "own", head), FolderOfAgent::of_the_run);
  EXPECT_EQ(run_in(folder / "own"), head.run);
  EXPECT_EQ(take_folder(folder / "own", head), FolderOfAgent::of_the_run);
}

TEST(HeadMark, AFolderOfAnotherRunStaysAsItIs) {
  const TemporaryFolder folder;
  begin_folder(folder / "own", "another");

  EXPECT_EQ(take_folder(folder / "own", head_with_savepoint(folder / "head")), FolderOfAgent::of_another_one);
  EXPECT_EQ(run_in(folder / "own"), "another");
}

TEST(HeadMark, ARunWithoutANameIsAnotherOne) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/run.json") << "{}";

  EXPECT_EQ(take_folder(folder / "own", head_with_savepoint(folder / "head")), FolderOfAgent::of_another_one);
}

TEST(HeadMark, AHeadWithoutASavepointTakesOverTheRunOfAnotherFolder) {
  const TemporaryFolder folder;
  begin_folder(folder / "own", "another");
  const FolderOfHead head = leave_head_mark(folder / "head");

  EXPECT_TRUE(head.is_empty);
  EXPECT_EQ(take_folder(folder / "own", head), FolderOfAgent::taken_over);
  EXPECT_EQ(run_in(folder / "own"), head.run);
}

// Its folder is empty, too, until it has saved.
TEST(HeadMark, ARunThatWasBegunAnewTakesThePlaceOfTheEarlierOneAtEachLaterStartToo) {
  const TemporaryFolder folder;
  begin_folder(folder / "own", "another");
  const std::string begun = leave_head_mark(folder / "head", true).run;
  const FolderOfHead later = leave_head_mark(folder / "head");

  EXPECT_EQ(later.run, begun);
  EXPECT_EQ(take_folder(folder / "own", later), FolderOfAgent::of_an_earlier_one);
  EXPECT_EQ(take_folder(folder / "own", head_with_savepoint(folder / "head")), FolderOfAgent::of_an_earlier_one);
  EXPECT_EQ(take_folder(folder / "new", later), FolderOfAgent::of_the_run);
}

// What puts a run aside may leave a record of that.
TEST(HeadMark, AFolderThatBeginsIsOfTheRunWhateverItHolds) {
  const TemporaryFolder folder;
  const FolderOfHead head = leave_head_mark(folder / "head", true);
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/start.json") << "{}";

  begin_folder(folder / "own", head.run);

  EXPECT_EQ(take_folder(folder / "own", head), FolderOfAgent::of_the_run);
}

TEST(HeadMark, StandsNextToTheFoldersOfHosts) {
  EXPECT_EQ(folder_of_host("/a/run", 2), "/a/run/hosts/2");
}

}  // namespace
}  // namespace holdfast::recovery
