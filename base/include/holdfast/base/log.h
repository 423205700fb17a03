#pragma once

// The only place from which the library writes text. By default a line goes to standard error, after the date, the
// local time, its offset from UTC and the level. An application that wants the lines elsewhere replaces the sink:
//
//   holdfast::set_log_sink([](holdfast::LogLevel level, std::string_view line) {
//     my_logger.write(holdfast::name(level), line);
//   });
//
// On a terminal, a line replaces the progress line (terminal.h), which appears again when it is drawn the next time.

#include <functional>
#include <optional>
#include <string_view>

namespace holdfast {

// In order of weight: a level includes all those after it.
enum class LogLevel { debug, info, warning, error };

std::string_view name(LogLevel level);  // "debug"
// The level of that name; empty for a name that no level has.
std::optional<LogLevel> log_level_from_name(std::string_view name);

// Writes one line, without a line end. Any thread. Never throws: a line that cannot be written is lost,
// because a full disk must not end a training run.
void log(LogLevel level, std::string_view line) noexcept;

// Sets the lowest level that is written to standard error. It is info until this is called. A sink gets
// every line, whatever its level. Any thread.
void set_log_level(LogLevel least);
LogLevel log_level();  // the level that was set last

// Replaces where lines go, for the whole process. An empty function restores standard error. The sink
// is called on the thread that logs, under a lock, so a sink must not log.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

}  // namespace holdfast
