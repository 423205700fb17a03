#pragma once

// How this process reacts to signals.

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace holdfast::recovery {

// A second signal within it is the first one, sent to all processes of a group and by a launcher.
inline constexpr std::chrono::seconds kOneRequest(1);

bool is_ignored(int signal);

// Forks, and calls `child` in the new process, which must not return. There all signals are blocked, so that no handler
// of this process runs. `before` becomes the mask of this process. Negative, with errno, when fork(2) fails.
template <class Child>
pid_t fork_with_signals_blocked(sigset_t& before, const Child& child) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) child();
  const int error_number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return pid;
}

// From here on SIGPIPE and SIGXFSZ no longer end this process: neither a reader that closes the output of a run, nor
// a limit of file sizes (ulimit -f), may end the run. The signals get a handler that does nothing, so that programs
// that this process starts have the default again. A signal that is ignored or has a handler is left alone.
void outlive_failing_writes();

// From here on the signals that stop a run (SIGINT, SIGTERM, SIGHUP, SIGUSR1) do nothing to this process, likewise.
// systemd and Slurm send them to all processes of a unit or a step at once, and a replica that died of one could not
// save. Children that it forks end by them.
void leave_stops_to_the_watchdog();

// Ignores both signals of failing writes, for a process that is about to execute a program that calls
// take_failing_writes_back(). Until that call they do not end the program either. Async-signal-safe.
void ignore_failing_writes();
// Gives the default back to those of the two that are ignored.
void take_failing_writes_back();

}  // namespace holdfast::recovery
