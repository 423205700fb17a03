// cpu_demand() of real child processes. Suites whose names end in DeathTest run first, while this process has no other
// threads: the thread sanitizer lets a child of a process with several threads start no threads.

#include "detect/cpu_time.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include "holdfast/base/deadline.h"
#include "support/comes_true.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

// A child process that is killed when its owner is destroyed.
class BusyChild {
 public:
  explicit BusyChild(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ != 0) return;
    act();
    ::_exit(0);
  }
  ~BusyChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  BusyChild(const BusyChild&) = delete;
  BusyChild& operator=(const BusyChild&) = delete;

  int pid() const { return pid_; }

 private:
  pid_t pid_;
};

void run_for_ever() {
  for (volatile unsigned count = 0;;) count = count + 1;
}

void run_on_the_first_allowed_processor() {
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&allowed);
  CPU_SET(first, &allowed);
  ::sched_setaffinity(0, sizeof allowed, &allowed);
  run_for_ever();
}

std::chrono::nanoseconds time_running(int pid) {
  clockid_t clock{};
  timespec time{};
  EXPECT_EQ(::clock_getcpuclockid(pid, &clock), 0);
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST(CpuDemandDeathTest, GrowsWhileAProcessRuns) {
  const BusyChild child(run_for_ever);

  EXPECT_TRUE(comes_true([&] { return cpu_demand(child.pid()) > 50ms; }));
}

TEST(CpuDemandDeathTest, StandsStillWhileAProcessIsStopped) {
  const BusyChild stopped(run_for_ever);
  const BusyChild running(run_for_ever);
  ::kill(stopped.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(stopped.pid(), &status, WUNTRACED), stopped.pid());
  ASSERT_TRUE(WIFSTOPPED(status));

  // The other thread runs on. A thread may be reported as stopped before it has left its processor.
  EXPECT_TRUE(comes_true([&] {
    const std::chrono::nanoseconds before = cpu_demand(stopped.pid());
    const std::chrono::nanoseconds others_before = cpu_demand(running.pid());
    EXPECT_TRUE(comes_true([&] { return cpu_demand(running.pid()) > others_before + 50ms; }));
    return cpu_demand(stopped.pid()) == before;
  }));
}

TEST(CpuDemandDeathTest, CountsTimeInWhichOthersHadTheProcessor) {
  const BusyChild one(run_on_the_first_allowed_processor);
  const BusyChild other(run_on_the_first_allowed_processor);

  EXPECT_TRUE(comes_true([&] { return cpu_demand(one.pid()) > time_running(one.pid()) + 50ms; }));
}

// NCCL's threads spin while they wait for a device, even for one that hangs. Between two ticks of the scheduler, the
// two times that are subtracted differ by some milliseconds. The tolerance is half of what the thread ran.
TEST(CpuDemandDeathTest, LeavesOutThreadsOfNccl) {
  const BusyChild child([] {
    std::thread progress([] {
      ::prctl(PR_SET_NAME, "NCCL Progress 0");
      run_for_ever();
    });
    progress.join();
  });
  ASSERT_TRUE(comes_true([&] { return time_running(child.pid()) > 50ms; }));
  const std::chrono::nanoseconds before = cpu_demand(child.pid());
  const std::chrono::nanoseconds ran_before = time_running(child.pid());

  ASSERT_TRUE(comes_true([&] { return time_running(child.pid()) > ran_before + 200ms; }));

  EXPECT_LT(cpu_demand(child.pid()) - before, 100ms);
}

TEST(CpuDemandDeathTest, CountsThreadsThatAreNotNccls) {
  const BusyChild child([] {
    std::thread worker(run_for_ever);
    worker.join();
  });

  EXPECT_TRUE(comes_true([&] { return cpu_demand(child.pid()) > 50ms; }));
}

TEST(CpuDemandDeathTest, IsZeroForAProcessThatIsGone) {
  int pid = 0;
  {
    const BusyChild child(run_for_ever);
    pid = child.pid();
  }

  EXPECT_EQ(cpu_demand(pid), 0ns);
}

}  // namespace
}  // namespace holdfast::recovery
