#pragma once

// `holdfast prune FOLDER`: deletes the savepoints of a folder that a rule does not keep.

#include <ostream>
#include <string>

#include "holdfast/base/file_system.h"
#include "holdfast/format/retention.h"

namespace holdfast::cli {

struct PruneOptions {
  format::RetentionPolicy retention{};
  std::string best_by = "val_loss";  // the metric that retention.keep_best means
};

// Reads the newest savepoint back first and deletes nothing unless one is whole. Writes a line for each file that it
// deletes to `out`, for each damaged one that it sets aside to `problems`. Returns the exit code: kDamaged when it set
// one aside. Throws Error for a folder without savepoints, for a rule that keeps everything, and when the best are to
// be kept by a metric that no savepoint has.
int prune(FileSystem& files, const std::string& folder, const PruneOptions& options, std::ostream& out,
          std::ostream& problems);

}  // namespace holdfast::cli
