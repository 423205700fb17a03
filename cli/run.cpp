#include "run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/launch.h"
#include "text.h"

namespace holdfast::cli {
namespace {

std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

int run(const RunOptions& options, Console& console) {
  if (options.watchdog.command.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no program to run; it stands behind a --: holdfast run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
  }
  recovery::WatchdogOptions watchdog = options.watchdog;
  if (options.hang_after_seconds > 0) watchdog.hang_after = to_milliseconds(options.hang_after_seconds);
  for (const std::string& fault : recovery::faults_of_environment()) watchdog.faults.push_back(fault);
  watchdog.start_timeout = to_milliseconds(options.start_timeout_seconds);
  watchdog.stop_grace = to_milliseconds(options.stop_grace_seconds);
  const std::vector<std::string> added = recovery::faults_of_environment();
  watchdog.faults.insert(watchdog.faults.end(), added.begin(), added.end());
  const recovery::RunOutcome outcome = recovery::run_watchdog(recovery::for_any_program(watchdog, options.devices));
  if (outcome.exit_code != recovery::kExitFinished)
    console.problems << "holdfast: " << printable(outcome.sentence) << "\n";
  return outcome.exit_code;
}

}  // namespace holdfast::cli
