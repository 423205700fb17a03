#include "prune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "exit_code.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "holdfast/recovery/run_lock.h"
#include "option_checks.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using format::SavepointEntry;

bool has_metric(FileSystem& files, const std::string& path, const std::string& metric) {
  try {
    return format::metric_of(format::ArrayFile::open(files, path).metadata(), metric).has_value();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_file) throw;
    return false;  // the keeper says so when it meets the file
  }
}

// Without a metric the best could not be told from the others, and would be deleted with them.
void require_metric(FileSystem& files, const std::string& folder, const std::vector<SavepointEntry>& entries,
                    const std::string& metric) {
  const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const SavepointEntry& entry) {
    return has_metric(files, folder + "/" + entry.name, metric);
  });
  if (is_there) return;
  throw Error(ErrorCode::not_found,
              fmt::format("no savepoint of {} says what its \"{}\" is, so the best cannot be told; name another metric "
                          "with --by (\"holdfast inspect --json\" shows them under \"metrics\")",
                          folder, metric));
}

// Empty: the folder is of no run, as far as it can be seen.
std::string run_directory_of(FileSystem& files, const std::string& folder) {
  if (files.exists(folder + "/lock")) return folder;
  const std::string parent = parent_folder(folder);
  return files.exists(parent + "/lock") && files.exists(parent + "/journal.jsonl") ? parent : "";
}

// Held until the command is done, so that no run begins meanwhile.
FileDescriptor lock_run_of(FileSystem& files, const std::string& folder) {
  const std::string run = run_directory_of(files, folder);
  if (run.empty()) return {};
  try {
    return recovery::lock_run_directory(run, Deadline::after(std::chrono::seconds(0)));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::already_running) throw;
    throw Error(error.code(),
                fmt::format("nothing was deleted from {}: a run is live in {}, and what its savepoints are kept by is "
                            "that run's choice; wait for its end, or let --dry-run say what would go",
                            folder, run));
  }
}

}  // namespace

int prune(FileSystem& files, const PruneOptions& options, Console& console) {
  const std::string& folder = options.folder;
  if (!files.exists(folder)) throw Error(ErrorCode::not_found, "there is no folder " + folder);
  if (options.retention.keep_last == 0 && options.retention.max_bytes == 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("nothing would be deleted from {}; say how many stay with --keep-last or --max-bytes", folder));
  }
  const FileDescriptor lock = options.is_trial ? FileDescriptor() : lock_run_of(files, folder);
  const std::vector<SavepointEntry> entries = format::list_savepoints(files, folder);
  if (entries.empty()) {
    throw Error(ErrorCode::not_found,
                fmt::format("folder {} has no savepoint-*.h5; give a folder of savepoints", folder));
  }
  if (options.retention.keep_best > 0) require_metric(files, folder, entries, options.best_by);

  int worst = kDone;
  const auto report = [&](const format::Problem& problem) {
    worst = kDamaged;
    console.problems << "holdfast: " << printable(problem.why);
    if (!problem.set_aside_as.empty()) {
      console.problems << "; it is " << printable(problem.set_aside_as) << " from here on";
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
  const std::size_t left = format::list_savepoints(files, folder).size() - (options.is_trial ? deleted.size() : 0);
  console.out << describe_count(deleted.size(), "savepoint") << " " << would << "deleted, " << left
              << (options.is_trial ? " would stay\n" : " stay\n");
  return worst;
}

namespace {

void add_prune_options(CLI::App& command, PruneOptions& options) {
  format::RetentionPolicy& retention = options.retention;
  command.add_option("FOLDER", options.folder, "A run directory, or another folder of savepoints")->required();
  command.add_option("--keep-last", retention.keep_last, "The newest so many stay; 0: all")->check(whole_from(0));
  command.add_option("--keep-best", retention.keep_best, "So many with the best metric stay, too")
      ->check(whole_from(0));
  command.add_option("--by", options.best_by, "The metric")->capture_default_str();
  const std::vector<std::pair<std::string, format::BestValue>> directions = {{"lowest", format::BestValue::lowest},
                                                                             {"highest", format::BestValue::highest},
                                                                             {"min", format::BestValue::lowest},
                                                                             {"max", format::BestValue::highest}};
  command
      .add_option("--best", retention.best,
                  "Which value of the metric is the best: lowest (default) or highest; min and max mean the same")
      ->transform(one_of(directions))
      ->type_name("lowest|highest");
  command.add_option("--keep-every", retention.keep_every_steps, "All whose step is a multiple stay, too")
      ->check(whole_from(0));
  command
      .add_option("--max-bytes", retention.max_bytes,
                  "The oldest of those go until all fit (10MB, 2GiB), but never the newest or the best")
      ->transform(size_in_bytes());
  command.add_flag("--dry-run", options.is_trial, "Say what would be deleted, and change nothing");
}

}  // namespace

void add_prune(Subcommands& commands) {
  commands.add<PruneOptions>(
      "prune",
      "Delete the savepoints of a folder that no rule keeps. The newest whole one and the best always stay. A run "
      "directory is refused while its run is live. Exit code: 0 done, 1 one was damaged, 2 not done",
      add_prune_options,
      [&commands](const PruneOptions& options) { return prune(commands.files, options, commands.console); });
}

}  // namespace holdfast::cli
