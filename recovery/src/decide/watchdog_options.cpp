#include "decide/watchdog_options.h"

#include <sys/resource.h>

#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {
namespace {

// Longer than survivors need for their way into the next generation and a step that is not a long one.
constexpr std::chrono::milliseconds kStartDelay(500);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "the watchdog cannot run: " + what);
}

// They travel to the workers in JSON, which can carry nothing else.
void check_utf8(const char* name, const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::exception&) {
    refuse(std::string(name) + " is not UTF-8 text");
  }
}

// Longer than any run, and so short that four times as much fits into the clock's 64 bits of nanoseconds.
constexpr std::chrono::hours kLongestDuration(24 * 3650);

void check_duration(const char* name, std::chrono::milliseconds duration) {
  if (duration.count() > 0 && duration <= kLongestDuration) return;
  refuse(std::string(name) + " is " + std::to_string(duration.count()) +
         " ms; it has to be longer than 0, and at most ten years (" +
         std::to_string(std::chrono::milliseconds(kLongestDuration).count()) + " ms)");
}

void check_count(const char* name, int count, int lowest, int highest) {
  if (count >= lowest && count <= highest) return;
  refuse(std::string(name) + " is " + std::to_string(count) + ", allowed are " + std::to_string(lowest) + " to " +
         std::to_string(highest));
}

// Checks the watchdog's own options: a wrong one would fail at the start of some process, and at each later start.
void check_open_files(const WatchdogOptions& options) {
  constexpr rlim_t kOfTheWatchdog = 24;
  constexpr rlim_t kOfAReplica = 6;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t needed = kOfTheWatchdog + kOfAReplica * static_cast<rlim_t>(options.replicas + options.recovery.spares);
  if (limit.rlim_cur >= needed) return;
  throw Error(ErrorCode::unavailable,
              "the watchdog cannot run: it may have " + std::to_string(limit.rlim_cur) + " files open, and needs " +
                  std::to_string(needed) + " for " + std::to_string(options.replicas) + " replicas and " +
                  std::to_string(options.recovery.spares) + " spares; raise the limit of open files (ulimit -n)");
}

}  // namespace

int most_replicas(const WatchdogOptions& options) {
  return options.max_replicas == 0 ? kMaxReplicas : options.max_replicas;
}

void check_options(const WatchdogOptions& options) {
  check_count("max_replicas", options.max_replicas, 0, kMaxReplicas);
  check_count("replicas", options.replicas, 1, most_replicas(options));
  check_count("spares", options.recovery.spares, 0, kMaxReplicas);
  if (options.recovery.spares > 0 && options.is_plain_program) {
    refuse("a spare waits to be told that it is needed, which a program that does not register cannot be");
  }
  if (options.recovery.when_slow != WhenSlow::report && options.is_plain_program) {
    refuse("how fast a program computes that does not register is not known, so nobody can be dealt less or replaced");
  }
  if (options.recovery.when_slow == WhenSlow::replace && options.recovery.recover_from == RecoverFrom::savepoint) {
    refuse("with recover_from savepoint the replacement of a slow replica would send all back to the newest savepoint");
  }
  if (options.run_directory.empty()) refuse("run_directory is empty");
  if (options.command.empty()) refuse("command is empty");
  check_count("max_restarts", options.recovery.max_restarts, 0, std::numeric_limits<int>::max());
  check_duration("place_rest", options.recovery.place_rest);
  check_duration("start_timeout", options.recovery.start_timeout);
  check_duration("stop_grace", options.recovery.stop_grace);
  check_duration("restart_window", options.recovery.restart_window);
  if (options.recovery.hang_after) check_duration("hang_after", *options.recovery.hang_after);
  if (options.recovery.callback_timeout) check_duration("callback_timeout", *options.recovery.callback_timeout);
  check_utf8("run_directory", options.run_directory);
  check_utf8("worker_config", options.worker_config);
  for (const std::string& fault : options.recovery.faults)
    parse_fault(fault, options.replicas + options.recovery.spares);
  check_open_files(options);
}

HangLimits hang_limits_of(const WatchdogOptions& options) {
  return {.starting = options.recovery.start_timeout,
          .hang_after = options.recovery.hang_after,
          .callback_timeout = options.recovery.callback_timeout,
          .names = options.limit_names};
}

SupervisorPolicy policy_of(const WatchdogOptions& options) {
  const bool keep_survivors = options.recovery.recover_from == RecoverFrom::survivors && !options.is_plain_program;
  return {.recovery = options.recovery,
          .replicas = options.replicas,
          .places = options.devices.empty() ? options.replicas : static_cast<int>(options.devices.size()),
          .keep_survivors = keep_survivors,
          .all_start_together = options.is_plain_program,
          .start_delay = kStartDelay};
}

}  // namespace holdfast::recovery
