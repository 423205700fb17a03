// SIGKILL at random moments of saving loses nothing that was reported durable.
//
// HOLDFAST_LONG_TESTS=1 kills a thousand times, which takes a minute or two.

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "holdfast/format/catalogue.h"
#include "resilience/saving/support/known_savepoints.h"
#include "support/long_run.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using Clock = std::chrono::steady_clock;

// The program that saves, and its output.
class Saver {
 public:
  Saver(const std::string& folder, const std::string& copy) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    const std::string program = built_program("savepoint_saver");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execl(program.c_str(), program.c_str(), folder.c_str(), copy.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    reports_ = ends[0];
  }
  ~Saver() {
    if (pid_ > 0) kill();
    ::close(reports_);
  }
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // False when no line comes before that moment, or the program has ended.
  bool read_report(std::int64_t& step, Clock::time_point until) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd poll{reports_, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) return false;
    return ::read(reports_, &step, sizeof step) == static_cast<ssize_t>(sizeof step);
  }

  // Returns whether the signal ended the program.
  bool kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

 private:
  pid_t pid_ = -1;
  int reports_ = -1;
};

TEST(Killing, LosesNothingThatWasReportedDurable) {
  const TemporaryFolder root;
  const std::vector<std::string> folders = {root / "run", root / "copy"};
  const std::vector<std::string> strangers = {"notes.txt", "mine.h5", "x.tmp-0123456789abcde", "savepoint-1.h5"};
  for (const std::string& folder : folders) {
    std::filesystem::create_directory(folder);
    for (const std::string& name : strangers) std::ofstream(folder + "/" + name) << name;
  }
  const int kills = is_long_run() ? 1000 : 40;
  std::mt19937_64 random(5);
  std::int64_t durable = -1;

  for (int i = 0; i < kills; ++i) {
    Saver saver(folders[0], folders[1]);
    std::int64_t step = -1;
    ASSERT_TRUE(saver.read_report(step, Clock::now() + std::chrono::seconds(60))) << "kill " << i;
    ASSERT_GE(step, durable) << "found at start " << i;
    // Kills the program after some savepoints, at a random moment.
    for (auto more = random() % 3; more > 0; --more) {
      durable = std::max(durable, step);
      ASSERT_TRUE(saver.read_report(step, Clock::now() + std::chrono::seconds(60))) << "kill " << i;
    }
    const auto moment = Clock::now() + std::chrono::microseconds(random() % 60'000);
    do {
      durable = std::max(durable, step);
    } while (saver.read_report(step, moment));
    ASSERT_TRUE(saver.kill()) << "it ended by itself before kill " << i;
    while (saver.read_report(step, Clock::now())) durable = std::max(durable, step);

    std::int64_t found = -1;
    format::find_newest_savepoint(posix_file_system(), folders, [&](const std::string& path) {
      found = read_known_savepoint(posix_file_system(), path);
    });
    ASSERT_GE(found, durable) << "after kill " << i;
  }

  EXPECT_GT(durable, kills / 4) << "it hardly came to save";
  for (const std::string& folder : folders) {
    for (const std::string& name : strangers) EXPECT_EQ(read_file(folder + "/" + name), name);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EXPECT_EQ(entry.path().string().find(".damaged"), std::string::npos) << entry.path();
    }
  }
}

}  // namespace
}  // namespace holdfast
