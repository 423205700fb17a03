#include "holdfast/base/threads.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <vector>

namespace holdfast {
namespace {

using Limits = std::vector<std::string>;

void append_limit(Limits& limits, const char* name, __rlimit_resource resource, rlim_t unit) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  limits.push_back(fmt::format("{} {}", name, limit.rlim_cur / unit));
}

// The limits of this process's control group, and of the groups that contain it, which apply too.
void append_group_limits(Limits& limits) {
  std::string path;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // The line of version 2 of control groups.
    if (line.starts_with("0::")) path = line.substr(3);
  }
  for (; !path.empty() && path != "/"; path = path.substr(0, path.rfind('/'))) {
    std::string value;
    std::ifstream("/sys/fs/cgroup" + path + "/pids.max") >> value;
    if (!value.empty() && value != "max") limits.push_back(fmt::format("pids.max of {} {}", path, value));
  }
}

std::string limits_here() {
  Limits limits;
  append_limit(limits, "ulimit -u", RLIMIT_NPROC, 1);
  append_group_limits(limits);
  // In KiB, as the shell's ulimit shows them.
  append_limit(limits, "ulimit -v", RLIMIT_AS, 1024);
  append_limit(limits, "ulimit -d", RLIMIT_DATA, 1024);
  return limits.empty() ? "this process sees none" : fmt::format("{}", fmt::join(limits, ", "));
}

}  // namespace

// EAGAIN does not say which limit was met, so the error lists all that apply here.
Error start_error(int error_number, const std::string& what) {
  const Error error = system_error(error_number, fmt::format("cannot start {}", what));
  if (error_number != EAGAIN) return error;
  return Error(error.code(),
               fmt::format("{}; a limit on processes and threads (ulimit -u, pids.max of the control group) or on "
                           "memory (ulimit -v, -d) leaves no room for it: raise the limit, or start fewer replicas or "
                           "threads; limits here: {}",
                           error.what(), limits_here()));
}

void leave_signals_to_others() {
  sigset_t others;
  ::sigfillset(&others);
  // The kernel ends a process at once whose failing thread blocks one of these. No handler could say where it failed.
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&others, signal);
  ::pthread_sigmask(SIG_SETMASK, &others, nullptr);
}

}  // namespace holdfast
