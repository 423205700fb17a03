// Options are checked before the first process starts. A wrong one would otherwise fail at the start of some process,
// and again at each restart, until the budget is spent.

#include "decide/policy.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {
namespace {

// Survivors reach the next generation and end a short step in this time. On two cores, the start of a spare made the
// first step after a loss take twice its time.
constexpr std::chrono::milliseconds kStartDelay(500);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the watchdog cannot run: {}", what));
}

// These texts travel to the workers in JSON, which has to be UTF-8.
void check_utf8(const char* name, const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::exception&) {
    refuse(fmt::format("{} is not UTF-8 text", name));
  }
}

// Longer than any run. Four times as much still fits into the clock's 64 bits of nanoseconds.
constexpr std::chrono::hours kLongestDuration(24 * 3650);

void check_duration(const char* name, std::chrono::milliseconds duration) {
  if (duration.count() > 0 && duration <= kLongestDuration) return;
  refuse(fmt::format("{} is {} ms; it must be longer than 0, and at most ten years ({} ms)", name, duration.count(),
                     std::chrono::milliseconds(kLongestDuration).count()));
}

// Names are those of the options, so that the user finds what to change.
void check_count(const char* name, int count, int lowest, int highest) {
  if (count >= lowest && count <= highest) return;
  refuse(fmt::format("{} is {}; it must be from {} to {}", name, count, lowest, highest));
}

// The watchdog holds some files, and a few for each process. Too few would fail in the middle of the run.
void check_open_files(const WatchdogOptions& options) {
  constexpr rlim_t kOfTheWatchdog = 24;
  constexpr rlim_t kOfAReplica = 6;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t needed = kOfTheWatchdog + kOfAReplica * static_cast<rlim_t>(options.replicas + options.recovery.spares);
  if (limit.rlim_cur >= needed) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("the watchdog cannot run: it may open {} files, but needs {} for {} replicas and {} spares; "
                          "raise the limit of open files (ulimit -n)",
                          limit.rlim_cur, needed, options.replicas, options.recovery.spares));
}

// What else a run over several hosts lacks: docs/decisions/hosts-missing.md
void check_hosts(const WatchdogOptions& options) {
  if (options.is_plain_program) {
    refuse(
        "a program that does not use Holdfast runs on a single host, since nothing connects its processes; leave "
        "--plain or --nnodes out");
  }
  if (options.devices.size() % static_cast<std::size_t>(options.hosts) != 0 || options.devices.empty()) {
    refuse(fmt::format("{} devices cannot be divided among {} hosts", options.devices.size(), options.hosts));
  }
  check_duration("join_timeout", options.join_timeout);
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
    refuse("spares need a program that registers with the watchdog, and this one does not; set spares to 0");
  }
  if (options.recovery.when_slow != WhenSlow::report && options.is_plain_program) {
    refuse("the speed of a program that does not register is not known, so its slow replicas can only be reported");
  }
  if (options.recovery.when_slow == WhenSlow::replace && !may_use_memory(options)) {
    refuse("a slow replica cannot be replaced when recovery is from savepoints: all would go back to the newest one");
  }
  if (options.hosts > 1) check_hosts(options);
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
  // A misspelled fault would otherwise never strike.
  for (const std::string& fault : all_faults(options)) parse_fault(fault, options.replicas + options.recovery.spares);
  check_open_files(options);
}

HangLimits hang_limits_of(const WatchdogOptions& options) {
  return {.starting = options.recovery.start_timeout,
          .hang_after = options.recovery.hang_after,
          .callback_timeout = options.recovery.callback_timeout,
          .names = options.limit_names};
}

std::chrono::milliseconds time_to_leave(const WatchdogOptions& options) {
  return options.recovery.stop_grace;
}

bool may_use_memory(const WatchdogOptions& options) {
  return options.recovery.recover_from == RecoverFrom::survivors;
}

std::vector<std::string> all_faults(const WatchdogOptions& options) {
  std::vector<std::string> faults = options.recovery.faults;
  const std::vector<std::string> added = faults_of_environment();
  faults.insert(faults.end(), added.begin(), added.end());
  return faults;
}

// Empty for a single host. Processes are assigned to slots in turn, so hosts take turns too: where there are fewer
// processes than slots, each host has some.
std::vector<int> hosts_of_slots(const WatchdogOptions& options) {
  std::vector<int> hosts;
  if (options.hosts == 1) return hosts;
  for (int slot = 0; slot < static_cast<int>(options.devices.size()); ++slot) hosts.push_back(slot % options.hosts);
  return hosts;
}

// A plain program cannot hand its state to a newcomer, so all its processes start together.
SupervisorPolicy policy_of(const WatchdogOptions& options) {
  const bool keep_survivors = may_use_memory(options) && !options.is_plain_program;
  // A dead process may still hold its device's memory, which its successor needs.
  const bool has_other_devices = std::any_of(options.devices.begin(), options.devices.end(),
                                             [](const std::string& device) { return !device.starts_with("cpu"); });
  return {.recovery = options.recovery,
          .starts_when_gone = options.recovery.start_when_gone.value_or(has_other_devices),
          .replicas = options.replicas,
          .device_slots = options.devices.empty() ? options.replicas : static_cast<int>(options.devices.size()),
          .hosts = options.hosts,
          .slot_hosts = hosts_of_slots(options),
          .join_timeout = options.join_timeout,
          .keep_survivors = keep_survivors,
          .all_start_together = options.is_plain_program,
          .start_delay = kStartDelay};
}

}  // namespace holdfast::recovery
