// The journal on disks that fill, after torn lines, and with content that Holdfast did not write. It must lose as
// little as possible and never end a run.

#include "journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "support/gate.h"
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

TEST_F(JournalTest, WritesTheTimeToTheMicrosecond) {
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  Journal(path_).append({{"event", "died"}});

  const double time = nlohmann::json::parse(lines_of(path_).at(0)).at("time").get<double>();
  // The time is cut to whole microseconds, and a double rounds it.
  EXPECT_GT(time, std::chrono::duration<double>(before).count() - 2e-6);
}

TEST_F(JournalTest, ReadsTheRestartsOfEarlierWatchdogs) {
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

TEST_F(JournalTest, SkipsATornLastLineAndStartsANewLineAfterIt) {
  std::ofstream(path_) << R"({"event":"start","generation":1})"
                       << "\n"
                       << R"({"event":"restart","generation":9,"res)";

  Journal(path_).append_restart({.generation = 2});
  const Past past = read_past(path_);

  EXPECT_EQ(lines_of(path_).size(), 3U);
  EXPECT_EQ(past.restarts.all, 1);
  EXPECT_EQ(past.last_generation, 2);
}

TEST_F(JournalTest, SkipsLinesThatHoldfastDidNotWrite) {
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

TEST_F(JournalTest, DoesNotTakeAReportForARestart) {
  Journal(path_).append({{"event", "restart"}, {"generation", 0}, {"details", {{"restart", 1}}}});

  EXPECT_EQ(read_past(path_).restarts.all, 0);
  EXPECT_TRUE(read_restarts(path_).empty());
}

TEST_F(JournalTest, AcceptsTextThatIsNotUtf8) {
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

// A limit of `bytes` for files, which acts like a full disk.
class FullAt {
 public:
  explicit FullAt(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullAt() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    ::signal(SIGXFSZ, old_handler_);
  }
  FullAt(const FullAt&) = delete;
  FullAt& operator=(const FullAt&) = delete;

 private:
  rlimit old_limit_{};
  void (*const old_handler_)(int) = ::signal(SIGXFSZ, SIG_IGN);
};

TEST_F(JournalTest, SurvivesAFullDisk) {
  Journal journal(path_);
  journal.append({{"event", "died"}});
  const FullAt full(std::filesystem::file_size(path_));

  EXPECT_NO_THROW(journal.append({{"event", "died"}}));
}

// The next line used to be appended to the torn one, so its event could not be read.
TEST_F(JournalTest, LosesOnlyTheTornLine) {
  Journal journal(path_);
  journal.append_restart({.generation = 0});
  {
    const FullAt full(std::filesystem::file_size(path_) + 10);
    journal.append_restart({.generation = 1});
    journal.append_restart({.generation = 2});
  }

  journal.append_restart({.generation = 3});
  journal.append_restart({.generation = 4});

  const std::vector<Restart> restarts = read_restarts(path_);
  ASSERT_EQ(restarts.size(), 3U);
  EXPECT_EQ(restarts[1].generation, 3);
  EXPECT_EQ(restarts[2].generation, 4);
  EXPECT_EQ(lines_of(path_).size(), 4U);
}

TEST_F(JournalTest, SkipsAnImpossibleGeneration) {
  std::ofstream(path_) << R"({"event":"start","generation":5})"
                       << "\n"
                       << R"({"event":"start","generation":2147483647})"
                       << "\n"
                       << R"({"event":"start","generation":1e300})"
                       << "\n"
                       << R"({"event":"start","generation":18446744073709551615})"
                       << "\n"
                       << R"({"event":"start","generation":-7})"
                       << "\n";

  EXPECT_EQ(read_past(path_).last_generation, 5);
}

TEST_F(JournalTest, RefusesASymbolicLink) {
  std::ofstream(directory_ / "victim") << "content\n";
  std::filesystem::create_symlink("victim", path_);

  try {
    Journal journal(path_);
    FAIL() << "the link was followed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path_));
    EXPECT_THAT(error.what(), HasSubstr("a symbolic link"));
  }
  EXPECT_EQ(lines_of(directory_ / "victim"), std::vector<std::string>{"content"});
}

// The start of a run used to wait silently for a writer of the FIFO, or to read zeros without end.
TEST_F(JournalTest, ReadsOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/full", directory_ / "zeros");

  EXPECT_THROW(read_past(path_), Error);
  EXPECT_THROW(read_restarts(path_), Error);
  EXPECT_THROW(Journal journal(path_), Error);
  EXPECT_THROW(read_past(directory_ / "zeros"), Error);
}

// A journal that a thread writes, in a folder that does not answer while the gate is shut.
class SlowFolder : public JournalTest {
 protected:
  SlowFolder() {
    set_log_sink([this](LogLevel, std::string_view line) { log_.emplace_back(line); });
  }
  ~SlowFolder() override {
    gate_->open();
    set_log_sink({});
  }

  void shut(FolderThread& thread) const {
    thread.add([gate = gate_] { gate->pass(); }, 0);
    gate_->wait_for_arrival();
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::vector<std::string> log_;
  // Far longer than anything takes here.
  const Journal::Limits patient_{.for_a_restart = std::chrono::minutes(1), .silent_end = std::chrono::minutes(1)};
  // What waits has surely waited too long.
  const Journal::Limits hasty_{.for_a_restart = std::chrono::milliseconds(1),
                               .silent_end = std::chrono::milliseconds(1),
                               .end = std::chrono::milliseconds(1)};
};

TEST_F(SlowFolder, HoldsUpNobodyWhoAppends) {
  FolderThread thread;
  {
    Journal journal(path_, &thread, patient_);
    shut(thread);

    for (int line = 0; line < 3; ++line) journal.append({{"number", line}});

    EXPECT_EQ(lines_of(path_).size(), 0U);
    gate_->open();
  }
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 3U);
  for (int line = 0; line < 3; ++line) EXPECT_EQ(nlohmann::json::parse(lines[line]).at("number"), line);
  EXPECT_THAT(log_, testing::IsEmpty());
}

TEST_F(SlowFolder, HasEachLineWhenTheJournalIsGone) {
  FolderThread thread;
  std::thread answers;
  {
    Journal journal(path_, &thread, patient_);
    shut(thread);
    journal.append_run_end(0, false);
    answers = std::thread([this] { gate_->open(); });
  }

  EXPECT_EQ(lines_of(path_).size(), 1U);
  answers.join();
}

TEST_F(SlowFolder, HasARestartBeforeTheRunGoesOn) {
  FolderThread thread;
  Journal journal(path_, &thread, patient_);
  journal.append({{"event", "died"}});

  journal.append_restart({.generation = 3});

  ASSERT_EQ(read_restarts(path_).size(), 1U);
  EXPECT_EQ(read_restarts(path_)[0].generation, 3);
}

TEST_F(SlowFolder, HoldsUpTheRunForTheFirstRestartOnly) {
  FolderThread thread;
  {
    Journal journal(path_, &thread, {.for_a_restart = hasty_.for_a_restart, .silent_end = patient_.silent_end});
    shut(thread);

    for (int generation = 0; generation < 3; ++generation) journal.append_restart({.generation = generation});

    ASSERT_EQ(log_.size(), 1U);
    EXPECT_THAT(log_[0], HasSubstr("the file system of the journal " + path_ + " does not answer; the run goes on"));
    gate_->open();
  }
  EXPECT_EQ(read_restarts(path_).size(), 3U);
}

TEST_F(SlowFolder, SaysHowManyLinesItLosesAtTheEnd) {
  FolderThread thread;
  {
    Journal journal(path_, &thread, hasty_);
    journal.append_restart({.generation = 0});
    shut(thread);
    journal.append({{"event", "died"}});
    journal.append_run_end(75, false);
  }

  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.back(), HasSubstr("the last 2 lines of the journal " + path_ + " are lost"));
}

TEST_F(SlowFolder, KeepsOnlySoManyLines) {
  FolderThread thread;
  {
    Journal journal(path_, &thread, {.waiting_bytes = 100, .silent_end = patient_.silent_end});
    shut(thread);

    for (int line = 0; line < 5; ++line) journal.append({{"number", line}, {"text", std::string(30, 'x')}});
    journal.append_run_end(0, false);
    gate_->open();
    ASSERT_TRUE(thread.wait(Deadline::after(std::chrono::minutes(1))));
    journal.append({{"number", 5}});
  }

  // Two lines of more than 50 bytes are too many, and the run's end always has room.
  const std::vector<std::string> lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(nlohmann::json::parse(lines[0]).at("number"), 0);
  EXPECT_EQ(nlohmann::json::parse(lines[1]).at("event"), "run_ended");
  ASSERT_EQ(log_.size(), 2U);
  EXPECT_THAT(log_[0], HasSubstr("lines of the journal " + path_ + " are lost"));
  EXPECT_THAT(log_[1], HasSubstr("4 lines of the journal " + path_ + " were lost"));
}

}  // namespace
}  // namespace holdfast::recovery
