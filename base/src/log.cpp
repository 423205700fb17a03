#include "holdfast/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

namespace holdfast {
namespace {

struct Sink {
  std::mutex mutex;
  std::function<void(LogLevel, std::string_view)> function;  // guarded by mutex
};

Sink& sink() {
  static Sink instance;
  return instance;
}

spdlog::logger& standard_error() {
  static const auto logger = [] {
    auto created =
        std::make_shared<spdlog::logger>("holdfast", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%Y-%m-%d %H:%M:%S %z %^%l%$ %v");
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void log(LogLevel level, std::string_view line) noexcept {
  try {
    const std::lock_guard lock(sink().mutex);
    if (sink().function) {
      sink().function(level, line);
    } else {
      standard_error().log(spdlog_level(level), "{}", line);
    }
  } catch (...) {
    // A line that cannot be written must not end a training run.
  }
}

void set_log_sink(std::function<void(LogLevel, std::string_view)> function) {
  const std::lock_guard lock(sink().mutex);
  sink().function = std::move(function);
}

}  // namespace holdfast
