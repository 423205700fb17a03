#pragma once

// One run of a program that calls holdfast::supervise(), or of `holdfast run`, under faults: started in a session of
// its own with a fresh run directory, given the faults through HOLDFAST_FAULTS, bounded in time, and looked at
// afterwards. What a run leaves in its run directory is all that is known of it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::resilience {

struct Program {
  // The program, looked up in PATH, and its arguments. In each, {run_dir} stands for the run directory and {replicas}
  // for `replicas`.
  std::vector<std::string> command{};
  int replicas = 2;
};

struct RunOptions {
  std::vector<std::string> faults{};  // specifications, see holdfast/recovery/fault_plan.h
  // For all starts together; then every process of the program is killed.
  std::chrono::milliseconds time_limit = std::chrono::minutes(2);
  // What the program's processes have to leave in once it has ended.
  std::chrono::milliseconds leave_time = std::chrono::seconds(5);
  // Empty: a temporary one, deleted afterwards. Otherwise it must not exist, and stays.
  std::string run_directory{};
};

struct FinishedFit {
  std::int64_t step = 0;
  std::string weights_digest{};

  friend bool operator==(const FinishedFit&, const FinishedFit&) = default;
};

// A replica that was lost, as the journal tells.
struct LostReplica {
  int generation = 0;
  int rank = 0;
  std::int64_t step = 0;
  std::string cause{};
};

// A fault that changed numbers of a replica, as the journal tells.
struct InjectedCorruption {
  int generation = 0;
  int rank = 0;
  std::int64_t step = 0;
  int replicas = 0;  // that the generation began with; 0: the journal does not say
};

struct RunResult {
  int exit_code = -1;  // 128 + its number where a signal ended the program
  int starts = 1;      // a program whose watchdog was killed is started again
  bool is_out_of_time = false;
  std::string sentence{};  // why it ended: the journal's last word, or else the last line of the output
  std::string output{};    // its end: at most 64 KiB
  int replicas = 0;        // that the watchdog began with; 0: it did not begin
  std::optional<FinishedFit> last_fit{};
  std::vector<std::int64_t> savepoint_steps{};  // at which one became durable, as the journal tells; rising
  std::vector<LostReplica> lost{};
  std::vector<InjectedCorruption> corruptions{};
  int roll_backs = 0;
  int faults_struck = 0;              // of those that were given
  std::vector<int> struck{};          // which of them, counted from 0; rising
  std::vector<int> processes_left{};  // alive leave_time after its end; they were killed
  std::chrono::milliseconds wall_time{};
};

// Blocks until the program is over and no process of it is left. Call it from a thread that lives as long: the program
// is killed when that thread ends. Throws Error{invalid_argument} when no argument names {run_dir}, Error naming the
// program when it cannot be started, Error{deadline_exceeded} when its processes cannot be killed.
RunResult run_program(const Program& program, const RunOptions& options);

}  // namespace holdfast::resilience
