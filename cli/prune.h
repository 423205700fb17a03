#pragma once

// `holdfast prune FOLDER`: deletes the savepoints of a folder that no rule keeps.

#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/retention.h"

namespace holdfast::cli {

struct Subcommands;

struct PruneOptions {
  std::string folder;
  format::RetentionPolicy retention{};
  std::string best_by = "val_loss";  // the metric that retention.keep_best means
  bool is_trial = false;             // says what it would do, and changes nothing
};

// Reads the newest savepoint back first and deletes nothing unless one is whole. Writes a line for each file that it
// deletes to `console.out`, for each damaged one that it sets aside to `console.problems`. Returns the exit code:
// kDamaged when a file was damaged. A run directory, or a folder in one, is locked meanwhile, but not for a trial;
// throws Error{already_running} while a run is live there. Throws Error for a folder without savepoints, for a rule
// that keeps everything, and when the best are to be kept by a metric that no savepoint has.
int prune(FileSystem& files, const PruneOptions& options, Console& console);

// Adds the subcommand with its options.
void add_prune(Subcommands& commands);

}  // namespace holdfast::cli
