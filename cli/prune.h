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
  std::string best_by = "val_loss";  // the metric of retention.keep_best
  bool is_trial = false;             // prints what would be deleted, and changes nothing
};

// Reads the newest savepoint first, and deletes nothing unless one is undamaged. Prints each deleted file to
// `console.out`, and each damaged file, which it sets aside, to `console.problems`. Returns the exit code: kDamaged
// when a file was damaged. Locks a run directory, or the run directory around the folder, except in a trial, and throws
// Error{already_running} while a run is live there. Throws Error for a folder without savepoints, for rules that keep
// everything, and when keep_best names a metric that no savepoint has.
int prune(FileSystem& files, const PruneOptions& options, Console& console);

// Adds the subcommand with its options.
void add_prune(Subcommands& commands);

}  // namespace holdfast::cli
