// A run may take several starts of its program. A fault that kills the watchdog ends the program, and the next start
// must resume the run.
#include "holdfast/testing/program_run.h"

#include <algorithm>
#include <csignal>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/fault_plan.h"
#include "program_session.h"
#include "run_folder.h"
#include "run_record.h"

namespace holdfast::resilience {
namespace {

int watchdog_kills(const std::vector<std::string>& faults) {
  return static_cast<int>(std::count_if(faults.begin(), faults.end(), [](const std::string& fault) {
    return recovery::parse_fault(fault, kMostRanks).kind == recovery::FaultKind::kill_watchdog;
  }));
}

// Starts the program once, and waits until it has ended or the deadline has passed.
void start_once(const std::vector<std::string>& command, const RunOptions& options, Deadline deadline,
                RunResult& result) {
  ProgramSession session(command, options.faults);
  result.is_out_of_time = !session.wait(deadline);
  session.finish(options.leave_time, result);
}

bool has_to_start_again(const RunResult& result, int most_starts) {
  // Only a death by SIGKILL, as the fault causes it, is followed by another start. A program that fails runs once.
  return result.exit_code == 128 + SIGKILL && !result.is_out_of_time && result.processes_left.empty() &&
         result.starts < most_starts;
}

}  // namespace

RunResult run_program(const Program& program, const RunOptions& options) {
  const int most_starts = 1 + watchdog_kills(options.faults);
  // One limit for all starts together, so that a run that ends again and again ends the test, too.
  const Deadline deadline = Deadline::after(options.time_limit);
  const RunFolder folder(options.run_directory);
  const std::vector<std::string> command = command_of(program, folder.run_directory());
  const auto begin = Deadline::Clock::now();
  RunResult result;
  start_once(command, options, deadline, result);
  while (has_to_start_again(result, most_starts)) {
    ++result.starts;
    start_once(command, options, deadline, result);
  }
  result.wall_time = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - begin);
  read_record(folder.run_directory(), result);
  return result;
}

}  // namespace holdfast::resilience
