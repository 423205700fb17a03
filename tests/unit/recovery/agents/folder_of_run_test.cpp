// Which run the folders of hosts hold, and what becomes of those that differ.

#include "agents/folder_of_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "agents/hosts_folder.h"
#include "holdfast/recovery/run_start.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

namespace fs = std::filesystem;

class FolderOfRun : public ::testing::Test {
 protected:
  // A folder with a savepoint of a run of this name; without a name, of a run on a single host.
  std::string make_run(const std::string& name, const std::string& run, const std::string& token = "") const {
    fs::create_directories(folder_ / name);
    if (!run.empty()) name_folder(folder_ / name, run, token);
    std::ofstream(folder_ / (name + "/savepoint-0000000004.h5")) << "whatever it holds";
    return folder_ / name;
  }
  HeadFolder head(bool was_asked_anew = false, const std::string& put_aside_as = "") const {
    return {folder_ / "head", was_asked_anew, put_aside_as};
  }
  FolderOfAgent compared(const HeadFolder& head, const std::string& own) const {
    return compare_folder(own, head.facts());
  }

  const TemporaryFolder folder_;
};

TEST_F(FolderOfRun, TravelsAsItIs) {
  const FolderOfHead folder{.mark = "a", .run = "b", .replaced = "c", .token = "d", .is_empty = true, .choices = "{}"};

  const FolderOfHead parsed = folder_of_head_from(to_json(folder));

  EXPECT_EQ(to_json(parsed), to_json(folder));
  EXPECT_EQ(parsed.replaced, "c");
  EXPECT_TRUE(parsed.is_empty);
  EXPECT_FALSE(parsed.is_fresh);
}

TEST_F(FolderOfRun, KeepsItsNameAtALaterStart) {
  const std::string first = head().facts().run;

  EXPECT_EQ(head().facts().run, first);
  EXPECT_FALSE(first.empty());
}

TEST_F(FolderOfRun, HasANameOfItsOwn) {
  const HeadFolder other(folder_ / "other", false, "");

  EXPECT_EQ(run_in(folder_ / "other"), other.facts().run);
  EXPECT_NE(run_in(folder_ / "other"), head().facts().run);
  EXPECT_EQ(run_in(folder_ / "none"), "");
}

TEST_F(FolderOfRun, IsEmptyAtTheHeadUntilItHasASavepointOrTrains) {
  HeadFolder empty = head();
  EXPECT_TRUE(empty.facts().is_empty);
  empty.begin_generation();
  EXPECT_FALSE(empty.facts().is_empty);

  std::ofstream(folder_ / "head/savepoint-0000000004.h5.tmp-1") << "half of one";
  EXPECT_TRUE(head().facts().is_empty);
  make_run("head", "");
  EXPECT_FALSE(head().facts().is_empty);
}

TEST_F(FolderOfRun, WithoutWorkIsTakenWhateverItsName) {
  make_run("head", "");
  fs::create_directories(folder_ / "own");
  name_folder(folder_ / "own", "another", "");
  std::ofstream(folder_ / "own/run.json") << "{}";

  EXPECT_EQ(compared(head(), folder_ / "own"), FolderOfAgent::without_a_run);
  EXPECT_EQ(compared(head(), folder_ / "none"), FolderOfAgent::without_a_run);
}

TEST_F(FolderOfRun, BelongsToTheRunOfTheSameName) {
  const HeadFolder of_head = head();

  EXPECT_EQ(compared(of_head, make_run("own", of_head.facts().run)), FolderOfAgent::of_the_run);
}

TEST_F(FolderOfRun, OfferedToAHeadWithoutASavepointGoesOnWithItsChoices) {
  const std::string own = make_run("own", "another");
  std::ofstream(folder_ / "own/run.json") << R"({"shards": 2})";
  HeadFolder of_head = head();

  ASSERT_EQ(compared(of_head, own), FolderOfAgent::offers_its_run);
  EXPECT_TRUE(of_head.take_over(offered_run(own)));

  EXPECT_EQ(of_head.facts().run, "another");
  EXPECT_EQ(run_in(folder_ / "head"), "another");
  EXPECT_EQ(text_in(folder_ / "head/run.json"), R"({"shards": 2})");
  EXPECT_EQ(compared(of_head, own), FolderOfAgent::of_the_run);
  EXPECT_FALSE(of_head.take_over({.run = "a third one"}));
}

TEST_F(FolderOfRun, GetsANameWhenALoneHostOffersIt) {
  const std::string own = make_run("own", "");
  HeadFolder of_head = head();

  ASSERT_EQ(compared(of_head, own), FolderOfAgent::offers_its_run);
  EXPECT_TRUE(of_head.take_over(offered_run(own)));

  EXPECT_EQ(run_in(own), of_head.facts().run);
}

TEST_F(FolderOfRun, StaysAsItIsIfItBelongsToAnotherRun) {
  make_run("head", "");
  HeadFolder of_head = head();
  const std::string own = make_run("own", "another");

  EXPECT_EQ(compared(of_head, own), FolderOfAgent::of_another_one);
  EXPECT_FALSE(of_head.take_over({.run = "another"}));
  EXPECT_EQ(run_in(own), "another");
  EXPECT_EQ(compared(of_head, make_run("of_one_host", "")), FolderOfAgent::of_another_one);
}

// The head's folder is not empty any more when a host comes that was away.
TEST_F(FolderOfRun, ThatTheHeadHasReplacedIsPutAsideAtEachLaterStartToo) {
  make_run("head.1", "earlier");
  head(true, folder_ / "head.1");
  make_run("head", "");
  const HeadFolder later = head();

  EXPECT_EQ(compared(later, make_run("own", "earlier")), FolderOfAgent::of_an_earlier_one);
  EXPECT_EQ(compared(later, make_run("third", "another")), FolderOfAgent::of_another_one);
}

TEST_F(FolderOfRun, IsPutAsideWhereTheHeadIsAskedToBeginAnewWithNothingOfItsOwn) {
  EXPECT_EQ(compared(head(true), make_run("own", "another")), FolderOfAgent::of_an_earlier_one);
}

// A scheduler repeats the occasion when it starts a job again, and host 0 may be another machine then.
TEST_F(FolderOfRun, GoesOnForTheSameOccasionAlthoughTheHeadIsAskedToBeginAnew) {
  fs::create_directories(folder_ / "head");
  std::ofstream(folder_ / "head/start.json") << R"({"fresh": "MONDAY"})";
  const HeadFolder of_head = head(true);

  EXPECT_EQ(of_head.facts().token, "MONDAY");
  EXPECT_EQ(compared(of_head, make_run("own", "another", "MONDAY")), FolderOfAgent::offers_its_run);
  EXPECT_EQ(compared(of_head, make_run("older", "older", "SUNDAY")), FolderOfAgent::of_an_earlier_one);
}

// It was once begun anew, and the disk with its beginning is back.
TEST_F(FolderOfRun, ThatWasBegunAnewIsItselfWhereverItWentOn) {
  const std::string run = head(true).facts().run;
  fs::rename(folder_ / "head", folder_ / "away");
  HeadFolder replacement = head();
  const std::string own = make_run("own", run);
  ASSERT_TRUE(replacement.take_over(offered_run(own)));
  fs::remove_all(folder_ / "head");
  fs::rename(folder_ / "away", folder_ / "head");

  EXPECT_EQ(compared(head(), own), FolderOfAgent::of_the_run);
}

TEST_F(FolderOfRun, TakesTheChoicesOfTheRunWhereItHasNone) {
  fs::create_directories(folder_ / "own");

  take_choices(folder_ / "own", "");
  EXPECT_FALSE(fs::exists(folder_ / "own/run.json"));
  take_choices(folder_ / "own", R"({"shards": 4})");
  take_choices(folder_ / "own", R"({"shards": 2})");

  EXPECT_EQ(text_in(folder_ / "own/run.json"), R"({"shards": 4})");
}

TEST_F(FolderOfRun, SendsNeitherDamagedChoicesNorADamagedName) {
  fs::create_directories(folder_ / "head/hosts");
  std::ofstream(folder_ / "head/run.json") << "{ \xff";
  std::ofstream(folder_ / "head/hosts/run") << "\xff\xfe";

  const HeadFolder of_head = head();

  EXPECT_EQ(of_head.facts().choices, "");
  EXPECT_FALSE(of_head.facts().run.empty());
  EXPECT_NO_THROW(static_cast<void>(to_json(of_head.facts()).dump()));
}

}  // namespace
}  // namespace holdfast::recovery
