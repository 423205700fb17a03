// Deletes savepoints by the same rules and code as a run does. What a live run keeps is that run's own policy, which
// this command does not know. So it holds the lock of the run directory, and no run can begin while it deletes.
// docs/decisions/live-runs.md

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "holdfast/recovery/run_lock.h"
#include "option_checks.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::BestValue;
using format::SavepointEntry;

struct PruneOptions {
  std::string folder;
  format::RetentionPolicy retention{};
  std::string best_by = "val_loss";  // the metric of retention.keep_best
  bool is_trial = false;             // prints what would be deleted, and changes nothing
};

bool has_metric(FileSystem& files, const std::string& path, const std::string& metric) {
  try {
    return format::metric_of(format::ArrayFile::open(files, path).metadata(), metric).has_value();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_file) throw;
    return false;  // the keeper reports a damaged file later
  }
}

// Without the metric, the best savepoints would not be recognised, and they would be deleted with the others.
void require_metric(FileSystem& files, const std::string& folder, const std::vector<SavepointEntry>& entries,
                    const std::string& metric) {
  const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const SavepointEntry& entry) {
    return has_metric(files, folder + "/" + entry.name, metric);
  });
  if (is_there) return;
  throw Error(
      ErrorCode::not_found,
      fmt::format("no savepoint in {} records the metric \"{}\", so the best cannot be found; name another metric "
                  "with --by (\"holdfast inspect --json\" shows them under \"metrics\")",
                  folder, metric));
}

// The run directory that the folder is, or lies in. Empty: the folder does not seem to belong to a run.
std::string run_directory_of(FileSystem& files, const std::string& folder) {
  if (files.exists(folder + "/lock")) return folder;
  const std::string parent = parent_folder(folder);
  // A file named lock in the parent may belong to another program, so the journal must be there
  // too.
  return files.exists(parent + "/lock") && files.exists(parent + "/journal.jsonl") ? parent : "";
}

// The caller holds the lock until it is done, so that no run begins meanwhile.
FileDescriptor lock_run_of(FileSystem& files, const std::string& folder) {
  const std::string run = run_directory_of(files, folder);
  if (run.empty()) return {};
  try {
    // Does not wait for the lock: a run may be live for days.
    return recovery::lock_run_directory(run, Deadline::after(std::chrono::seconds(0)));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::already_running) throw;
    throw Error(
        error.code(),
        fmt::format("nothing was deleted from {}: a run is live in {}, and it decides which savepoints to keep; "
                    "wait for its end, or use --dry-run to see what would be deleted",
                    folder, run));
  }
}

// Reads the newest savepoint first, and deletes nothing unless one is undamaged. Prints each deleted file to
// `console.out`, and each damaged file, which it sets aside, to `console.problems`. Returns the exit code: kDamaged
// when a file was damaged or cannot be read. Locks a run directory, or the run directory around the folder, except in a
// trial, and throws Error{already_running} while a run is live there. Throws Error for a folder without savepoints, for
// rules that keep everything, and when keep_best names a metric that no savepoint has.
int prune(FileSystem& files, const PruneOptions& options, Console& console) {
  const std::string& folder = options.folder;
  if (!files.exists(folder)) throw Error(ErrorCode::not_found, fmt::format("there is no folder {}", folder));
  // Rules that delete nothing come from a forgotten option.
  if (options.retention.keep_last == 0 && options.retention.max_bytes == 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("no savepoint in {} would be deleted; set a limit with --keep-last or --max-bytes", folder));
  }
  // A trial changes nothing, so it takes no lock and may look at a live run.
  const FileDescriptor lock = options.is_trial ? FileDescriptor() : lock_run_of(files, folder);
  const std::vector<SavepointEntry> entries = format::list_savepoints(files, folder);
  if (entries.empty()) {
    throw Error(ErrorCode::not_found,
                fmt::format("folder {} has no savepoint-*.h5; give a folder of savepoints", folder));
  }
  if (options.retention.keep_best > 0) require_metric(files, folder, entries, options.best_by);

  int worst = kDone;
  // A damaged file is reported and set aside, one that cannot be read stays; the others are pruned all the same.
  const auto report = [&](const format::Problem& problem) {
    worst = kDamaged;
    console.problems << "holdfast: " << printable(problem.why);
    if (!problem.set_aside_as.empty()) {
      console.problems << "; it was set aside as \"" << printable(problem.set_aside_as) << "\"";
    }
    console.problems << "\n";
  };
  format::SavepointKeeper keeper(files, folder,
                                 {.copies = {},
                                  .retention = options.retention,
                                  .best_by = options.best_by,
                                  .report = report,
                                  .is_trial = options.is_trial});
  const std::vector<std::string> deleted = keeper.prune();
  const std::string would = options.is_trial ? "would be " : "";
  for (const std::string& name : deleted)
    console.out << would << "deleted " << printable(folder) << "/" << name << "\n";
  // A trial deleted nothing, so the files that it would delete are still listed.
  const std::size_t left = format::list_savepoints(files, folder).size() - (options.is_trial ? deleted.size() : 0);
  console.out << describe_count(deleted.size(), "savepoint") << " " << would << "deleted, " << left
              << (options.is_trial ? " would stay\n" : " stay\n");
  return worst;
}

void add_prune_options(CLI::App& command, PruneOptions& options) {
  format::RetentionPolicy& retention = options.retention;
  command.add_option("FOLDER", options.folder, "A run directory, or another folder of savepoints")->required();
  command.add_option("--keep-last", retention.keep_last, "Keep this many of the newest savepoints; 0: all")
      ->check(whole_from(0));
  command.add_option("--keep-best", retention.keep_best, "Also keep this many savepoints with the best metric")
      ->check(whole_from(0));
  command.add_option("--by", options.best_by, "The metric of --keep-best")->capture_default_str();
  add_choice<BestValue>(command, "--best", retention.best,
                        "The best value of the metric: lowest (default) or highest; min and max mean the same",
                        {{"lowest", BestValue::lowest},
                         {"highest", BestValue::highest},
                         {"min", BestValue::lowest},
                         {"max", BestValue::highest}})
      ->type_name("lowest|highest");
  command
      .add_option("--keep-every", retention.keep_every_steps, "Also keep savepoints whose step is a multiple of this")
      ->check(whole_from(0));
  command
      .add_option("--max-bytes", retention.max_bytes,
                  "Of all these, delete the oldest until the rest fits (10MB, 2GiB), but never the newest or the best")
      ->transform(size_in_bytes());
  command.add_flag("--dry-run", options.is_trial, "Show what would be deleted, and change nothing");
}

}  // namespace

void add_prune(Subcommands& commands) {
  commands.add<PruneOptions>(
      "prune",
      "Delete the savepoints of a folder that no rule keeps. The newest undamaged one and the best always stay. A run "
      "directory is refused while its run is live. Exit code: 0 done, 1 a savepoint was damaged or "
      "cannot be read, 2 nothing was done",
      add_prune_options,
      [&commands](const PruneOptions& options) { return prune(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
