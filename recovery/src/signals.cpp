#include "signals.h"

#include <signal.h>

namespace holdfast::recovery {
namespace {

bool has_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == handler;
}

void do_nothing(int /*signal*/) {}

}  // namespace

bool is_ignored(int signal) {
  return has_handler(signal, SIG_IGN);
}

void outlive_broken_pipes() {
  if (!has_handler(SIGPIPE, SIG_DFL)) return;
  struct sigaction action {};
  action.sa_handler = do_nothing;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace holdfast::recovery
