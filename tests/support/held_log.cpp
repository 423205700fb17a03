#include "support/held_log.h"

#include <utility>

#include <unistd.h>

namespace holdfast {

HeldLog::HeldLog(Write write) : write_(std::move(write)), owner_(::getpid()) {}

void HeldLog::begin_test() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  is_shown_ = false;
}

void HeldLog::show() {
  const std::lock_guard lock(mutex_);
  if (!kept_.empty()) write_(kept_);
  kept_.clear();
  is_shown_ = true;
}

void HeldLog::show_at_abort() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && ::getpid() == owner_) write_(kept_);
}

void HeldLog::take(LogLevel level, std::string_view line) {
  if (level < log_level()) return;
  const std::string text = std::string(name(level)).append(" ").append(line).append("\n");
  // Before the lock: another thread may have held it when this process was forked.
  if (::getpid() != owner_) return write_(text);
  const std::lock_guard lock(mutex_);
  if (is_shown_) return write_(text);
  kept_ += text;
}

}  // namespace holdfast
