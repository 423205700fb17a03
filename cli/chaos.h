#pragma once

// `holdfast chaos -- PROGRAM ARGS`: runs a program undisturbed and under faults, and compares.

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
  std::vector<std::string> command{};  // with {run_dir}, and {replicas} where there is one
  // Where the faults come from: one of these.
  std::vector<std::string> faults{};
  std::string plan_path{};
  std::optional<int> random_faults{};
  bool is_matrix = false;
  bool is_pairs = false;
  std::optional<double> kill_every_seconds{};

  std::uint64_t seed = 0;  // of random faults, of samples, and of who is killed
  std::optional<int> replicas{};
  std::optional<std::int64_t> steps{};  // that the run has, for random faults; as the undisturbed run had them
  bool is_one_run_each = false;         // one run for each fault, not one for all of them
  bool allows_missed = false;           // a fault that never struck is only said
  // Of the matrix.
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

// Writes a table to `console.out` and, while it works, a line for each run to `console.problems`; findings last, each
// with the command that makes it again. Returns kDone when the program survived everything, kDamaged when it did not,
// and kNotDone when it did but not every fault struck, unless that is allowed: such a run shows nothing. Throws Error
// for wrong usage, and when the undisturbed run does not finish. Blocks for as long as the runs take.
int chaos(FileSystem& files, const ChaosOptions& options, Console& console);

// Adds the subcommand with its options.
void add_chaos(Subcommands& commands);

}  // namespace holdfast::cli
