#pragma once

// The only place from which the library writes text. By default a line goes to standard error, behind the date, the
// local time, its offset from UTC and the level; an application that wants it elsewhere replaces the sink. On a
// terminal a line takes the place of a progress line (terminal.h), which comes back when it is drawn again.

#include <functional>
#include <optional>
#include <string_view>

namespace holdfast {

enum class LogLevel { debug, info, warning, error };

std::string_view name(LogLevel level);  // "debug"
// Empty for a name that no level has.
std::optional<LogLevel> log_level_from_name(std::string_view name);

// Thread-safe; never throws.
void log(LogLevel level, std::string_view line) noexcept;

// The least that is written to standard error: info until this is called. A sink gets every line. Any thread.
void set_log_level(LogLevel least);
LogLevel log_level();

// Replaces where lines go for the whole process; an empty function restores standard error. The sink is called under a
// lock, from any thread.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

}  // namespace holdfast
