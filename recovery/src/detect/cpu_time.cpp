#include "detect/cpu_time.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace holdfast::recovery {
namespace {

// The running time of all threads, with those that have ended, to the nanosecond.
std::chrono::nanoseconds time_running(int pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

struct ThreadTimes {
  std::chrono::nanoseconds running{};
  std::chrono::nanoseconds ready{};
};

// Threads end at any time, so a file that is gone counts as no time.
ThreadTimes times_of(const std::filesystem::path& thread) {
  std::ifstream file(thread / "schedstat");
  std::int64_t running = 0;
  std::int64_t ready = 0;
  if (!(file >> running >> ready)) return {};
  return {std::chrono::nanoseconds(running), std::chrono::nanoseconds(ready)};
}

// With NCCL_SET_THREAD_NAME=1, which our replicas set, threads have names such as "NCCL Progress 0".
bool is_of_nccl(const std::filesystem::path& thread) {
  std::ifstream file(thread / "comm");
  std::string name;
  return std::getline(file, name) && name.starts_with("NCCL ");
}

// Adds the time that living threads were ready to run, and subtracts what NCCL's threads ran. /proc/PID/schedstat
// covers only the main thread, so each thread is read.
std::chrono::nanoseconds correction_by_threads(int pid) {
  std::chrono::nanoseconds sum{};
  std::error_code error;
  std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error);
  for (; !error && threads != std::filesystem::directory_iterator(); threads.increment(error)) {
    const ThreadTimes times = times_of(threads->path());
    sum += is_of_nccl(threads->path()) ? -times.running : times.ready;
  }
  return sum;
}

}  // namespace

std::chrono::nanoseconds cpu_demand(int pid) {
  return time_running(pid) + correction_by_threads(pid);
}

}  // namespace holdfast::recovery
