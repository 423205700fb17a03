#pragma once

// `holdfast chaos -- PROGRAM ARGS`: runs a program without faults and with faults, and compares the weights.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

struct ChaosOptions {
  std::vector<std::string> command{};  // contains {run_dir}, and may contain {replicas}
  // The source of the faults: exactly one of these.
  std::vector<std::string> faults{};
  std::string plan_path{};
  std::optional<int> random_faults{};
  bool is_matrix = false;
  bool is_pairs = false;
  std::optional<double> kill_every_seconds{};

  std::uint64_t seed = 0;  // for random faults, for samples, and for the choice of the replica to kill
  std::optional<int> replicas{};
  std::optional<std::int64_t> steps{};  // the last step of random faults; empty: that of the undisturbed run
  bool is_one_run_each = false;         // one run for each fault, not one for all of them
  bool allows_missed = false;           // a fault that never struck is reported, and is no failure
  // For --matrix and --pairs.
  std::vector<int> matrix_replicas{2, 4};
  std::int64_t step = 10;
  std::int64_t savepoint_step = 12;
  std::int64_t snapshot_step = 10;
  std::optional<std::size_t> sample{};

  double timeout_seconds = 120;
  std::string keep_in{};
  std::string json_path{};
  std::string junit_path{};
};

// Writes a line for each finished run to `console.problems`. At the end a table goes to `console.out`, then the
// findings, each with the command that repeats it. Returns kDone when the program survived everything, kDamaged when it
// did not, and kNotDone when it survived but not every fault struck, unless `allows_missed`. Throws Error for wrong
// usage, and when the undisturbed run does not finish. Blocks for as long as the runs take.
int chaos(FileSystem& files, const ChaosOptions& options, Console& console);

// Adds the subcommand with its options.
void add_chaos(Subcommands& commands);

}  // namespace holdfast::cli
