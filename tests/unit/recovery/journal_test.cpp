#include "journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class JournalTest : public testing::Test {
 protected:
  TemporaryFolder directory_;
  std::string path_ = directory_.path() + "/journal.jsonl";
};

TEST_F(JournalTest, WritesOneObjectALineWithItsTime) {
  const double before = unix_seconds_now();
  Journal journal(path_);

  journal.append({{"event", "savepoint written"}, {"details", {{"path", "a\nb"}}}});
  journal.append({{"event", "died"}, {"rank", 1}});

  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(lines[0]).at("details").at("path"), "a\nb");
  EXPECT_GE(nlohmann::json::parse(lines[1]).at("time").get<double>(), before);
}

TEST_F(JournalTest, TellsTheTimeToTheMicrosecond) {
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  Journal(path_).append({{"event", "died"}});

  const double time = nlohmann::json::parse(lines_of(path_).at(0)).at("time").get<double>();
  // Cut to whole microseconds, and to what a double holds of them.
  EXPECT_GT(time, std::chrono::duration<double>(before).count() - 2e-6);
}

TEST_F(JournalTest, GivesBackTheRestartsOfEarlierWatchdogs) {
  Journal(path_).append_restart(
      {.generation = 3, .rank = 1, .cause = "exited with code 3", .detected_unix_seconds = 1700000000.25, .step = 42});
  Journal(path_).append({{"event", "start"}, {"generation", 4}});

  const Past past = read_past(path_);
  const std::vector<Restart> restarts = read_restarts(path_);

  EXPECT_EQ(past.restarts.all, 1);
  EXPECT_EQ(past.restarts.by_rank, (std::map<int, std::int64_t>{{1, 1}}));
  ASSERT_EQ(restarts.size(), 1U);
  EXPECT_EQ(restarts[0].generation, 3);
  EXPECT_EQ(restarts[0].rank, 1);
  EXPECT_EQ(restarts[0].cause, "exited with code 3");
  EXPECT_EQ(restarts[0].detected_unix_seconds, 1700000000.25);
  EXPECT_EQ(restarts[0].step, 42);
  EXPECT_EQ(past.last_generation, 4);
}

TEST_F(JournalTest, HasNoPastWithoutAFile) {
  const Past past = read_past(path_);

  EXPECT_EQ(past.restarts.all, 0);
  EXPECT_TRUE(read_restarts(path_).empty());
  EXPECT_EQ(past.last_generation, -1);
}

TEST_F(JournalTest, SkipsATornLastLineAndStartsAFreshOneAfterIt) {
  std::ofstream(path_) << R"({"event":"start","generation":1})"
                       << "\n"
                       << R"({"event":"restart","generation":9,"res)";

  Journal(path_).append_restart({.generation = 2});
  const Past past = read_past(path_);

  EXPECT_EQ(lines_of(path_).size(), 3U);
  EXPECT_EQ(past.restarts.all, 1);
  EXPECT_EQ(past.last_generation, 2);
}

TEST_F(JournalTest, SkipsLinesThatAreNoneOfItsOwn) {
  std::ofstream(path_) << "[1, 2]\n\nnull\n"
                       << R"({"generation":"two"})"
                       << "\n"
                       << R"({"restart":{"generation":1}})"
                       << "\n"
                       << R"({"event":"start","generation":5})"
                       << "\n";

  const Past past = read_past(path_);

  EXPECT_EQ(past.restarts.all, 0);
  EXPECT_TRUE(read_restarts(path_).empty());
  EXPECT_EQ(past.last_generation, 5);
}

TEST_F(JournalTest, TakesNoReportForARestart) {
  Journal(path_).append({{"event", "restart"}, {"generation", 0}, {"details", {{"restart", 1}}}});

  EXPECT_EQ(read_past(path_).restarts.all, 0);
  EXPECT_TRUE(read_restarts(path_).empty());
}

TEST_F(JournalTest, TakesTextThatIsNotUtf8) {
  Journal(path_).append({{"what", "\xff"}});

  EXPECT_EQ(lines_of(path_).size(), 1U);
}

TEST_F(JournalTest, NamesThePathThatItCannotOpen) {
  try {
    Journal journal("/dev/null/journal.jsonl");
    FAIL() << "the journal was opened";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dev/null/journal.jsonl"));
  }
}

TEST_F(JournalTest, OutlivesAFullDisk) {
  Journal journal("/dev/full");

  EXPECT_NO_THROW(journal.append({{"event", "died"}}));
}

}  // namespace
}  // namespace holdfast::recovery
