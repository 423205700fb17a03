#pragma once

// The only place from which the library writes text. By default a line goes to standard error, behind the date, the
// local time, its offset from UTC and the level; an application that wants it elsewhere replaces the sink.

#include <functional>
#include <string_view>

namespace holdfast {

enum class LogLevel { debug, info, warning, error };

// Thread-safe; never throws.
void log(LogLevel level, std::string_view line) noexcept;

// Replaces where lines go for the whole process; an empty function restores standard error. Debug lines are dropped
// unless a sink is set. The sink is called under a lock, from any thread.
void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

}  // namespace holdfast
