#pragma once

// Holds back the log lines of a test until the test fails. A test that passes prints none.

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "holdfast/base/log.h"

namespace holdfast {

class HeldLog {
 public:
  using Write = std::function<void(std::string_view)>;

  // `write` gets whole lines, each with its end of line.
  explicit HeldLog(Write write);

  // Forgets the lines of the test before, and keeps the next ones.
  void begin_test();
  // Writes the lines that were kept, and from here on each line at once. Safe to call again.
  void show();
  // Writes the lines that were kept, from a handler of SIGABRT. Gives up if a thread holds the lock.
  void show_at_abort();
  // A sink for set_log_sink(). Any thread. In a forked process a line is written at once, since it could not be shown
  // later.
  void take(LogLevel level, std::string_view line);

 private:
  Write write_;
  pid_t owner_;
  std::mutex mutex_;
  std::string kept_;       // guarded by mutex_
  bool is_shown_ = false;  // guarded by mutex_
};

}  // namespace holdfast
