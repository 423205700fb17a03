// An exec resets handlers to the default, and keeps signals that are ignored. So this process has a handler that
// does nothing, and programs that it starts are not affected. docs/decisions/runs.md
#include "process/signals.h"

#include <span>

namespace holdfast::recovery {
namespace {

constexpr int kSignalsOfFailingWrites[] = {SIGPIPE, SIGXFSZ};
constexpr int kSignalsOfStops[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

bool has_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == handler;
}

void do_nothing(int /*signal*/) {}

pid_t worker_pid = -1;  // set before on_stop() is a handler

// A child that this process has forked, as Python's multiprocessing does, ends by such a signal.
void on_stop(int signal) {
  if (::getpid() == worker_pid) return;
  ::signal(signal, SIG_DFL);
  // Blocked until the handler returns.
  ::raise(signal);
}

void outlive(std::span<const int> signals, void (*handler)(int)) {
  for (const int signal : signals) {
    if (!has_handler(signal, SIG_DFL)) continue;
    struct sigaction action {};
    action.sa_handler = handler;
    // The handler must not make system calls fail with EINTR, which the code of the program may not expect.
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

bool is_ignored(int signal) {
  return has_handler(signal, SIG_IGN);
}

void outlive_failing_writes() {
  outlive(kSignalsOfFailingWrites, do_nothing);
}

void leave_stops_to_the_watchdog() {
  worker_pid = ::getpid();
  outlive(kSignalsOfStops, on_stop);
}

void ignore_failing_writes() {
  for (const int signal : kSignalsOfFailingWrites) ::signal(signal, SIG_IGN);
}

// An ignored signal stays ignored in programs that this process starts, and those may rely on the default.
void take_failing_writes_back() {
  for (const int signal : kSignalsOfFailingWrites) {
    if (is_ignored(signal)) ::signal(signal, SIG_DFL);
  }
}

}  // namespace holdfast::recovery
