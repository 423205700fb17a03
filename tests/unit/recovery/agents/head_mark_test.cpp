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

TEST(HeadMark, AFolderWithoutARunBecomesOneOfTheHeadsRun) {
  const TemporaryFolder folder;
  const std::string run = leave_head_mark(folder / "head").run;
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/notes.txt") << "no run";

  EXPECT_EQ(take_folder(folder / "own", run), FolderOfAgent::of_the_run);
  EXPECT_EQ(run_in(folder / "own"), run);
  EXPECT_EQ(take_folder(folder / "own", run), FolderOfAgent::of_the_run);
}

TEST(HeadMark, AFolderOfAnotherRunStaysAsItIs) {
  const TemporaryFolder folder;
  const std::string earlier = leave_head_mark(folder / "earlier").run;
  const std::string run = leave_head_mark(folder / "head").run;
  take_folder(folder / "own", earlier);

  EXPECT_EQ(take_folder(folder / "own", run), FolderOfAgent::of_another_one);
  EXPECT_EQ(run_in(folder / "own"), earlier);
}

TEST(HeadMark, ARunWithoutANameIsAnotherOne) {
  const TemporaryFolder folder;
  const std::string run = leave_head_mark(folder / "head").run;
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/run.json") << "{}";

  EXPECT_EQ(take_folder(folder / "own", run), FolderOfAgent::of_another_one);
}

TEST(HeadMark, ARunThatWasBegunAnewTakesThePlaceOfTheEarlierOneAtEachLaterStartToo) {
  const TemporaryFolder folder;
  take_folder(folder / "own", leave_head_mark(folder / "earlier").run);
  const std::string begun = leave_head_mark(folder / "head", true).run;
  const std::string later = leave_head_mark(folder / "head").run;

  EXPECT_EQ(later, begun);
  EXPECT_EQ(take_folder(folder / "own", later), FolderOfAgent::of_an_earlier_one);
  EXPECT_EQ(take_folder(folder / "new", later), FolderOfAgent::of_the_run);
  EXPECT_EQ(take_folder(folder / "new", later), FolderOfAgent::of_the_run);
}

// What puts a run aside may leave a record of that.
TEST(HeadMark, AFolderThatBeginsIsOfTheRunWhateverItHolds) {
  const TemporaryFolder folder;
  const std::string run = leave_head_mark(folder / "head", true).run;
  std::filesystem::create_directories(folder / "own");
  std::ofstream(folder / "own/start.json") << "{}";

  begin_folder(folder / "own", run);

  EXPECT_EQ(take_folder(folder / "own", run), FolderOfAgent::of_the_run);
}

TEST(HeadMark, StandsNextToTheFoldersOfHosts) {
  EXPECT_EQ(folder_of_host("/a/run", 2), "/a/run/hosts/2");
}

}  // namespace
}  // namespace holdfast::recovery
