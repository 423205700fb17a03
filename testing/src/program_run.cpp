// A run may take several starts of its program. A fault that kills the watchdog ends the program, and the next start
// must resume the run.
#include "holdfast/testing/program_run.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/fault_plan.h"
#include "pretended_hosts.h"
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

// Several hosts are looked at in turns of this length: one thread waits for all of them.
constexpr std::chrono::milliseconds kTurn(10);

Deadline earlier(Deadline one, Deadline other) {
  return one.moment() < other.moment() ? one : other;
}

// The program on one host, from its start to its end, and from a next start where a fault has killed its watchdog.
class HostRun {
 public:
  HostRun(const std::vector<std::string>& command, const RunOptions& options, std::vector<std::string> variables)
      : command_(command), options_(options), variables_(std::move(variables)) {
    start();
  }

  bool is_over() const { return session_ == nullptr; }
  bool was_started_again() const { return starts_ > 1; }
  int starts() const { return starts_; }
  const RunResult& end() const { return end_; }

  // Looks whether the program has ended. `may_start_again` is called where SIGKILL has ended it, as the fault does: a
  // program that fails runs once.
  void look(Deadline deadline, const std::function<bool()>& may_start_again) {
    if (is_over() || !session_->wait(deadline)) return;
    finish();
    const bool was_killed = end_.exit_code == 128 + SIGKILL && end_.processes_left.empty();
    if (was_killed && may_start_again()) start();
  }

  // Kills it.
  void give_up() {
    if (is_over()) return;
    end_.is_out_of_time = true;
    finish();
  }

 private:
  void start() {
    ++starts_;
    end_ = {};
    session_ = std::make_unique<ProgramSession>(command_, options_.faults, variables_);
  }

  void finish() {
    session_->finish(options_.leave_time, end_);
    session_.reset();
  }

  const std::vector<std::string>& command_;
  const RunOptions& options_;
  const std::vector<std::string> variables_;
  std::unique_ptr<ProgramSession> session_;  // while it runs
  int starts_ = 0;
  RunResult end_;  // of the last start
};

// All hosts of a run. The first one decides when the run is over.
class HostRuns {
 public:
  HostRuns(const std::vector<std::string>& command, const RunOptions& options, const PretendedHosts& hosts)
      : options_(options), starts_left_(watchdog_kills(options.faults)) {
    for (int host = 0; host < hosts.count(); ++host) runs_.emplace_back(command, options, hosts.variables_of(host));
  }

  void wait(Deadline deadline) {
    while (!runs_.front().is_over() && !deadline.has_passed()) look(deadline);
    // The others hear of the end. A host that was started again may come too late to hear of it.
    const Deadline end = earlier(deadline, Deadline::after(options_.leave_time));
    while (!all_are_over() && !end.has_passed()) look(end);
    for (HostRun& run : runs_) run.give_up();
  }

  RunResult end() const {
    RunResult result = runs_.front().end();
    for (auto run = runs_.begin() + 1; run != runs_.end(); ++run) {
      result.starts += run->starts() - 1;
      result.output += run->end().output;
      const std::vector<int>& left = run->end().processes_left;
      result.processes_left.insert(result.processes_left.end(), left.begin(), left.end());
      // Where the first host has failed, its sentence says why, and the others wait for it in vain.
      if (run->was_started_again() || result.exit_code != 0) continue;
      result.is_out_of_time = run->end().is_out_of_time;
      result.exit_code = run->end().exit_code;
    }
    result.starts += runs_.front().starts() - 1;
    return result;
  }

 private:
  // Waits for a moment only where several hosts may end.
  void look(Deadline deadline) {
    const Deadline moment = runs_.size() == 1 ? deadline : earlier(deadline, Deadline::after(kTurn));
    for (HostRun& run : runs_) {
      run.look(moment, [&] { return !deadline.has_passed() && starts_left_-- > 0; });
    }
  }

  bool all_are_over() const {
    return std::all_of(runs_.begin(), runs_.end(), [](const HostRun& run) { return run.is_over(); });
  }

  const RunOptions& options_;
  int starts_left_;
  std::vector<HostRun> runs_;
};

}  // namespace

RunResult run_program(const Program& program, const RunOptions& options) {
  // One limit for all starts together, so that a run that ends again and again ends the test, too.
  const Deadline deadline = Deadline::after(options.time_limit);
  const RunFolder folder(options.run_directory);
  const std::vector<std::string> command = command_of(program, folder.run_directory());
  const PretendedHosts hosts(program.hosts);
  const auto begin = Deadline::Clock::now();
  HostRuns runs(command, options, hosts);
  runs.wait(deadline);
  RunResult result = runs.end();
  result.wall_time = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - begin);
  read_record(folder.run_directory(), result);
  return result;
}

}  // namespace holdfast::resilience
