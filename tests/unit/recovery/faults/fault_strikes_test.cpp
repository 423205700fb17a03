// Each kind of fault that a process does to itself strikes a real child process. The test checks what its parent
// sees.

#include "faults/fault_strikes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "channel/descriptors.h"
#include "faults/fault_kinds.h"
#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "support/comes_true.h"
#include "support/sanitizer.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSurvived = 42;
constexpr int kThrew = 43;
constexpr int kThrewBadAlloc = 44;

// A child process that runs a function and then ends with kSurvived. The destructor kills it.
class StruckChild {
 public:
  explicit StruckChild(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ == 0) live(act);
  }
  ~StruckChild() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StruckChild(const StruckChild&) = delete;
  StruckChild& operator=(const StruckChild&) = delete;

  pid_t pid() const { return pid_; }

  // The next change of state that waitpid(2) reports.
  int next_status(int options = 0) {
    int status = -1;
    EXPECT_TRUE(comes_true([&] { return ::waitpid(pid_, &status, options | WNOHANG) == pid_; })) << "nothing happened";
    if (WIFEXITED(status) || WIFSIGNALED(status)) pid_ = -1;
    return status;
  }

  // The letter of its state in /proc, and the clock ticks that it has computed.
  std::pair<char, std::uint64_t> state_and_ticks() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    char state = '?';
    fields >> state;
    std::uint64_t ticks = 0;
    // Fields 4 to 14 of proc(5); the last one is utime.
    for (int i = 0; i < 11; ++i) {
      std::int64_t value = 0;
      fields >> value;
      ticks = static_cast<std::uint64_t>(value);
    }
    return {state, ticks};
  }

 private:
  [[noreturn]] static void live(const std::function<void()>& act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      ::_exit(kThrewBadAlloc);
    } catch (...) {
      ::_exit(kThrew);
    }
    ::_exit(kSurvived);
  }

  pid_t pid_;
};

// Reaches the phase of one fault of rank 0. The mark of a fault exists when it strikes.
class Strikes : public ::testing::Test {
 protected:
  std::function<void()> meeting(const std::string& fault, Faults::Process place = {}) {
    place.run_directory = directory_.path();
    return [fault, place] {
      Fault parsed = parse_fault("rank=0,step=1," + fault, 1);
      const FaultPhase phase = parsed.phase;
      Faults({std::move(parsed)}, place).reach(phase, 1);
    };
  }

  int status_after(const std::string& fault) { return StruckChild(meeting(fault)).next_status(); }

  bool has_struck() const {
    std::error_code none;
    return std::filesystem::directory_iterator(directory_ / "faults", none) != std::filesystem::directory_iterator();
  }

  TemporaryFolder directory_;
};

TEST_F(Strikes, EndTheProcessWithASignal) {
  const std::map<std::string, int> signals{
      {"fault=kill", SIGKILL}, {"fault=segfault", SIGSEGV}, {"fault=terminate", SIGABRT}};
  for (const auto& [fault, signal] : signals) {
    const int status = status_after(fault);

    ASSERT_TRUE(WIFSIGNALED(status)) << fault;
    EXPECT_EQ(WTERMSIG(status), signal) << fault;
  }
}

TEST_F(Strikes, EndTheProcessWithAnExitCode) {
  const std::map<std::string, int> codes{
      {"fault=exit0", 0}, {"fault=exit1", 1}, {"fault=exit", 3}, {"fault=throw", kThrew}};
  for (const auto& [fault, code] : codes) {
    const int status = status_after(fault);

    ASSERT_TRUE(WIFEXITED(status)) << fault;
    EXPECT_EQ(WEXITSTATUS(status), code) << fault;
  }
}

TEST_F(Strikes, BypassTheHandlerOfASegmentationFault) {
  const auto strike = meeting("fault=segfault");
  const int status = StruckChild([&] {
                       std::signal(SIGSEGV, SIG_IGN);
                       strike();
                     }).next_status();

  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
}

TEST_F(Strikes, StopTheProcessUntilItIsContinued) {
  StruckChild child(meeting("fault=stop"));
  const int status = child.next_status(WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGSTOP);

  ::kill(child.pid(), SIGCONT);

  EXPECT_EQ(WEXITSTATUS(child.next_status()), kSurvived);
}

TEST_F(Strikes, EndAPauseByThemselves) {
  StruckChild child(meeting("fault=pause,duration_ms=20"));

  EXPECT_TRUE(WIFSTOPPED(child.next_status(WUNTRACED)));
  EXPECT_EQ(WEXITSTATUS(child.next_status()), kSurvived);
}

TEST_F(Strikes, LeaveNoChildAfterAPause) {
  const auto strike = meeting("fault=pause,duration_ms=1");
  const int status = StruckChild([&] {
                       strike();
                       ::_exit(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 1);
                     }).next_status();

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The channel of a dead process must close at once. It must not stay open in the child that was to wake the process.
TEST_F(Strikes, HoldNoDescriptorOfAProcessThatIsKilledDuringAPause) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  StruckChild child(meeting("fault=pause,duration_ms=3600000"));
  ASSERT_TRUE(WIFSTOPPED(child.next_status(WUNTRACED)));
  writing.reset();

  ::kill(child.pid(), SIGKILL);
  child.next_status();

  ASSERT_TRUE(wait_for_descriptor(reading.value(), POLLHUP, Deadline::after(kPatience)));
  char byte = 0;
  EXPECT_EQ(::read(reading.value(), &byte, 1), 0);
}

TEST_F(Strikes, ComputeWithoutEndInALoop) {
  const StruckChild child(meeting("fault=loop"));

  constexpr std::uint64_t kTicks = 5;
  EXPECT_TRUE(comes_true([&] { return child.state_and_ticks().second >= kTicks; }));
  EXPECT_EQ(child.state_and_ticks().first, 'R');
}

TEST_F(Strikes, SleepWithoutEndInAHang) {
  const StruckChild child(meeting("fault=hang"));

  EXPECT_TRUE(comes_true([&] { return has_struck() && child.state_and_ticks().first == 'S'; }));
}

TEST_F(Strikes, ThrowBadAllocAndLeaveEnoughMemoryToReportIt) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer's shadow memory does not live under RLIMIT_AS";
  const auto strike = meeting("fault=oom");
  const int status = StruckChild([&] {
                       bool was_thrown = false;
                       try {
                         strike();
                       } catch (const std::bad_alloc&) {
                         was_thrown = true;
                       }
                       const std::vector<char> report(std::size_t{256} << 20U);
                       ::_exit(was_thrown && report.size() > 1 ? 0 : 1);
                     }).next_status();

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Strikes, FlipBytesOfTheNewestSavepointAndKill) {
  const std::string content(10'000, 'x');
  for (const char* name : {"savepoint-0000000009.h5", "savepoint-0000000010.h5", "savepoint-0000000011.h5.damaged"}) {
    std::ofstream(directory_ / name) << content;
  }

  const int status = status_after("fault=damage,seed=4");

  const auto read = [&](const std::string& name) {
    std::ifstream file(directory_ / name);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_NE(read("savepoint-0000000010.h5"), content);
  EXPECT_EQ(read("savepoint-0000000010.h5").size(), content.size());
  EXPECT_EQ(read("savepoint-0000000009.h5"), content);
  EXPECT_EQ(read("savepoint-0000000011.h5.damaged"), content);
}

TEST_F(Strikes, KillIfThereIsNoSavepointToDamage) {
  const int status = status_after("fault=damage");

  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(Strikes, OnTheChannelCallWhatTheyWereGiven) {
  std::vector<std::string> calls;
  const Faults::Hooks hooks{
      .close_channel = [&] { calls.push_back("close"); },
      .send_garbage = [&](std::span<const std::byte> bytes) { calls.push_back(bytes.empty() ? "nothing" : "garbage"); },
      .stop_beats =
          [&](std::optional<std::chrono::milliseconds> duration) {
            calls.push_back(duration ? "beats " + std::to_string(duration->count()) : "beats without end");
          }};

  for (const char* fault : {"close-channel", "garbage", "lose-beats", "delay-beats,duration_ms=7"}) {
    meeting("fault=" + std::string(fault), {.hooks = hooks})();
  }

  EXPECT_THAT(calls, ElementsAre("close", "garbage", "beats without end", "beats 7"));
}

TEST_F(Strikes, OnTheChannelSendTheSameGarbageForTheSameSeed) {
  std::vector<std::vector<std::byte>> sent;
  const Faults::Hooks hooks{
      .send_garbage = [&](std::span<const std::byte> bytes) { sent.emplace_back(bytes.begin(), bytes.end()); }};

  for (const char* fault : {"garbage,seed=1", "garbage,phase=data,seed=1", "garbage,seed=2"}) {
    meeting("fault=" + std::string(fault), {.hooks = hooks})();
  }

  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0], sent[1]);
  EXPECT_NE(sent[0], sent[2]);
}

TEST_F(Strikes, OnTheChannelReportThatThereIsNoChannel) {
  for (const char* fault : {"close-channel", "garbage", "lose-beats", "delay-beats"}) {
    try {
      meeting("fault=" + std::string(fault))();
      ADD_FAILURE() << fault << " had an effect";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_THAT(error.what(), HasSubstr(fault));
    }
  }
}

TEST(FaultKinds, HaveAStrikeExactlyWhereTheProcessActs) {
  for (const FaultKindRow& row : fault_kind_rows()) {
    EXPECT_EQ(row.strike != nullptr, row.means == FaultMeans::process) << row.name;
  }
}

}  // namespace
}  // namespace holdfast::recovery
