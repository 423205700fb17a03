// The rules of format's catalogue, applied to a run. A savepoint is deleted only after a newer one was read back. A
// damaged one is passed over with a warning if another one serves: it must not end a training that could go on.
// docs/decisions/savepoints.md

#include "train/state/resume.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"
#include "nn/losses/metric_direction.h"
#include "train/state/monitor.h"

namespace holdfast {
namespace {

// The mean `name` that the savepoint records; empty if it records no such mean, or if the file is damaged or gone.
std::optional<double> metric_in(FileSystem& files, const std::string& path, const std::string& name) {
  try {
    return format::metric_of(format::ArrayFile::open(files, path).metadata(), name);
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::invalid_file) {
      log(LogLevel::warning, fmt::format("savepoint {} is passed over: {}", path, failure.what()));
    } else if (failure.code() != ErrorCode::not_found) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

std::string savepoint_name(std::int64_t step) {
  return format::savepoint_name(step);
}

// By names alone, so this also works while files are damaged.
std::optional<std::int64_t> newest_savepoint_step(FileSystem& files, const std::string& folder) {
  const std::vector<format::SavepointEntry> savepoints = format::list_savepoints(files, folder);
  if (savepoints.empty()) return std::nullopt;
  return savepoints.back().step;
}

std::vector<std::string> list_savepoint_paths(FileSystem& files, const std::string& folder) {
  std::vector<std::string> paths;
  for (const format::SavepointEntry& entry : format::list_savepoints(files, folder)) {
    paths.push_back(folder + "/" + entry.name);
  }
  return paths;
}

// Only the index is read, so this is quick for gigabytes, too.
std::string savepoint_metadata(FileSystem& files, const std::string& path) {
  return std::string(format::ArrayFile::open(files, path).metadata());
}

void replace_savepoint(FileSystem& files, const std::string& path) {
  std::string name = path + ".replaced";
  // A file that was replaced earlier is never overwritten.
  for (int number = 2; files.exists(name); ++number) name = fmt::format("{}.replaced-{}", path, number);
  files.rename(path, name);
  files.sync_folder(parent_folder(path));
}

void drop_savepoint(FileSystem& files, const std::vector<std::string>& folders, const std::string& name,
                    const std::string& newer) {
  try {
    // Read back completely: until then the old savepoint may be the only good one.
    format::verify_savepoint(files, folders.front() + "/" + newer);
    for (const std::string& folder : folders) {
      const std::string path = folder + "/" + name;
      if (!files.exists(path)) continue;
      files.remove(path);
      // A deletion that a power cut undoes would leave a savepoint that the run does not expect.
      files.sync_folder(folder);
    }
  } catch (const Error& failure) {
    log(LogLevel::warning,
        fmt::format("savepoint {} is no longer needed, but could not be deleted: {}", name, failure.what()));
  }
}

std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const SavepointProblem& report, bool is_owner) {
  return format::find_newest_savepoint(files, folders, read,
                                       {.is_owner = is_owner, .report = [&](const format::Problem& problem) {
                                          report(problem.path, problem.why, problem.set_aside_as);
                                        }});
}

std::function<void(const std::string& name)> make_savepoint_keeper(FileSystem& files, const std::string& folder,
                                                                   const std::vector<std::string>& copies,
                                                                   const ModelCheckpointOptions& options) {
  // The two enumerations are alike, but `format` must not know the SDK.
  const format::RetentionPolicy retention{
      .keep_last = options.keep_last,
      .keep_best = options.best_by.empty() ? 0 : options.keep_best,
      .keep_every_steps = options.keep_every_steps,
      .best = options.best == Best::highest ? format::BestValue::highest : format::BestValue::lowest,
      .max_bytes = options.max_bytes};
  const auto warn = [](const format::Problem& problem) {
    const std::string where =
        problem.set_aside_as.empty() ? "" : fmt::format("; it was set aside as {}", problem.set_aside_as);
    log(LogLevel::warning, fmt::format("savepoint {} cannot be relied on: {}{}", problem.path, problem.why, where));
  };
  // Shared, since a std::function must be copyable.
  const auto keeper = std::make_shared<format::SavepointKeeper>(files, folder,
                                                                format::KeeperOptions{.copies = copies,
                                                                                      .retention = retention,
                                                                                      .best_by = options.best_by,
                                                                                      .threads = options.threads,
                                                                                      .report = warn});
  return [keeper](const std::string& name) { keeper->keep(name); };
}

// Users call it outside of a run too, so it reads from the file system of the machine.
std::string best_savepoint(const std::string& folder, const std::string& name, Best best) {
  if (best == Best::automatic) {
    const std::optional<Best> known = direction_of_name(name);
    if (!known) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("best_savepoint() cannot tell from the name \"{}\" whether lower or higher values are "
                              "better; say Best::lowest or Best::highest",
                              name));
    }
    best = *known;
  }
  FileSystem& files = posix_file_system();
  std::optional<double> best_value;
  std::string path_of_best;
  for (const format::SavepointEntry& entry : format::list_savepoints(files, folder)) {
    const std::string path = folder + "/" + entry.name;
    const std::optional<double> value = metric_in(files, path, name);
    // The oldest of equal values wins, as in ModelCheckpoint.
    if (!value || std::isnan(*value) || (best_value && !is_better(*value, *best_value, best, 0))) continue;
    best_value = value;
    path_of_best = path;
  }
  if (best_value) return path_of_best;
  throw Error(ErrorCode::not_found,
              fmt::format("no savepoint in {0} has a mean called \"{1}\"; ModelCheckpoint with best_by = \"{1}\" keeps "
                          "the best of them",
                          folder, name));
}

}  // namespace holdfast
