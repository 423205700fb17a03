// The one place that writes to standard error, by way of spdlog. Processes that write to one terminal do
// not share a lock, so each line is one write(2) that also clears the row of a progress line. Nothing
// here is destroyed at exit, since destructors and exit handlers may log (docs/decisions/journal.md).

#include "holdfast/base/log.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <string>

#include <unistd.h>

#include "holdfast/base/terminal.h"

namespace holdfast {
namespace {

struct Level {
  std::string_view name;
  spdlog::level::level_enum spdlog_level;
  std::string_view colour;  // of spdlog's own sinks
};

// These stand in the order of LogLevel.
constexpr std::array<Level, 4> kLevels{{{"debug", spdlog::level::debug, "\x1b[36m"},
                                        {"info", spdlog::level::info, "\x1b[32m"},
                                        {"warning", spdlog::level::warn, "\x1b[33m\x1b[1m"},
                                        {"error", spdlog::level::err, "\x1b[31m\x1b[1m"}}};

const Level& properties(LogLevel level) {
  return kLevels.at(static_cast<std::size_t>(level));
}

struct Sink {
  std::mutex mutex;
  std::function<void(LogLevel, std::string_view)> function;  // guarded by mutex
  std::atomic<LogLevel> least = LogLevel::info;              // the lowest level for standard error
};

// This and the logger are never destroyed: code that runs while the process exits may log.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

// Each line is one write, since other processes write to the same terminal. spdlog's own sinks use
// several writes.
// null_mutex, because log() holds its own lock.
class StandardError final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view plain(line.data(), line.size());
    if (!is_terminal(STDERR_FILENO)) return write_all(plain);
    // Only the level has a colour. It is one of the table, since only log() logs here.
    const auto* const level = std::find_if(kLevels.begin(), kLevels.end(),
                                           [&](const Level& each) { return each.spdlog_level == message.level; });
    const std::size_t begin = message.color_range_start;
    const std::size_t end = message.color_range_end;
    std::string shown(kClearLine);
    shown.append(plain.substr(0, begin)).append(level->colour).append(plain.substr(begin, end - begin));
    shown.append("\x1b[m").append(plain.substr(end));
    write_all(shown);
  }
  void flush_() override {}

 private:
  static void write_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
      // A reader that has gone, or a full disk: the line is lost, and the training goes on.
      if (written < 0 && errno != EINTR) return;
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
};

spdlog::logger& standard_error() {
  static spdlog::logger& logger = []() -> spdlog::logger& {
    auto* const created = new spdlog::logger("holdfast", std::make_shared<StandardError>());
    created->set_level(spdlog::level::debug);
    created->set_pattern("%Y-%m-%d %H:%M:%S %z %^%l%$ %v");
    return *created;
  }();
  return logger;
}

}  // namespace

std::string_view name(LogLevel level) {
  return properties(level).name;
}

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  for (std::size_t level = 0; level < kLevels.size(); ++level) {
    if (kLevels.at(level).name == name) return static_cast<LogLevel>(level);
  }
  return std::nullopt;
}

// The sink is called under the lock. So lines of several threads come one after another, and a sink
// that set_log_sink() replaced is no longer running when that returns.
void log(LogLevel level, std::string_view line) noexcept {
  try {
    const std::lock_guard lock(sink().mutex);
    if (sink().function) {
      sink().function(level, line);
    } else if (level >= sink().least) {
      standard_error().log(properties(level).spdlog_level, "{}", line);
    }
  } catch (...) {
    // A line that cannot be written must not end a training run.
  }
}

void set_log_level(LogLevel least) {
  sink().least = least;
}

LogLevel log_level() {
  return sink().least;
}

void set_log_sink(std::function<void(LogLevel, std::string_view)> function) {
  const std::lock_guard lock(sink().mutex);
  sink().function = std::move(function);
}

}  // namespace holdfast
