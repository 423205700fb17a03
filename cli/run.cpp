#include "run.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/terminal.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/train/memory_savepoint.h"
#include "text.h"

namespace holdfast::cli {
namespace {

std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void save_what_is_left(const std::string& run_directory, std::int64_t step, std::span<const std::byte> snapshot,
                       Console& console) {
  try {
    const std::optional<std::string> path = save_from_memory(run_directory, step, snapshot);
    if (path) console.problems << "holdfast: the newest state in memory was saved as " << printable(*path) << "\n";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_file) {
      console.problems
          << "holdfast: the newest state in memory is of a program that is none of the SDK's, whose savepoints "
             "it alone can write; it was not saved\n";
      return;
    }
    console.problems << "holdfast: the newest state in memory could not be saved: " << printable(error.what()) << "\n";
  }
}

}  // namespace

int run(const RunOptions& options, Console& console) {
  if (options.watchdog.command.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no program to run; it stands behind a --: holdfast run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
  }
  recovery::WatchdogOptions watchdog = options.watchdog;
  watchdog.start = recovery::start_asked_for(options.starts_anew ? std::optional(recovery::Start::fresh) : std::nullopt,
                                             options.start_token);
  if (options.hang_after_seconds > 0) watchdog.hang_after = to_milliseconds(options.hang_after_seconds);
  if (options.callback_timeout_seconds > 0)
    watchdog.callback_timeout = to_milliseconds(options.callback_timeout_seconds);
  watchdog.limit_names = {
      .hang_after = "--hang-after", .callback_timeout = "--callback-timeout", .start_timeout = "--start-timeout"};
  watchdog.place_rest = to_milliseconds(options.place_rest_seconds);
  watchdog.start_timeout = to_milliseconds(options.start_timeout_seconds);
  watchdog.stop_grace = to_milliseconds(options.stop_grace_seconds);
  const std::vector<std::string> added = recovery::faults_of_environment();
  watchdog.faults.insert(watchdog.faults.end(), added.begin(), added.end());
  if (watchdog.recover_from == recovery::RecoverFrom::survivors) {
    watchdog.when_unfinished = [&](std::int64_t step, std::span<const std::byte> snapshot) {
      save_what_is_left(watchdog.run_directory, step, snapshot, console);
    };
  }
  const recovery::RunOutcome outcome = recovery::run_watchdog(recovery::for_any_program(watchdog, options.devices));
  if (outcome.exit_code != recovery::kExitFinished)
    console.problems << (console.has_terminal ? kClearLine : "") << "holdfast: " << printable(outcome.sentence) << "\n";
  return outcome.exit_code;
}

}  // namespace holdfast::cli
