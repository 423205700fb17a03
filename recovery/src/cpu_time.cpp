#include "cpu_time.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace holdfast::recovery {
namespace {

// Of ended threads too, to the nanosecond, in one call.
std::chrono::nanoseconds time_running(int pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// /proc/PID/schedstat would be that of the main thread alone.
std::chrono::nanoseconds time_ready(int pid) {
  std::chrono::nanoseconds sum{};
  std::error_code error;
  std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  for (; !error && threads != std::filesystem::directory_iterator(); threads.increment(error)) {
    std::ifstream file(threads->path() / "schedstat");
    std::int64_t running = 0;
    std::int64_t ready = 0;
    if (file >> running >> ready) sum += std::chrono::nanoseconds(ready);
  }
  return sum;
}

}  // namespace

std::chrono::nanoseconds cpu_demand(int pid) {
  return time_running(pid) + time_ready(pid);
}

}  // namespace holdfast::recovery
