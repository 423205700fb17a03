#pragma once

// What was logged while the object lives, by any thread.

#include <mutex>
#include <string>
#include <string_view>

#include "holdfast/base/log.h"

namespace holdfast {

class LoggedLines {
 public:
  LoggedLines() {
    set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_ += line;
    });
  }
  ~LoggedLines() { set_log_sink({}); }
  LoggedLines(const LoggedLines&) = delete;
  LoggedLines& operator=(const LoggedLines&) = delete;

  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace holdfast
