#include "train/resume.h"

#include <memory>
#include <utility>

#include "holdfast/base/log.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/format/savepoint_keeper.h"

namespace holdfast {

std::string savepoint_name(std::int64_t step) {
  return format::savepoint_name(step);
}

std::optional<std::int64_t> newest_savepoint_step(FileSystem& files, const std::string& folder) {
  const std::vector<format::SavepointEntry> savepoints = format::list_savepoints(files, folder);
  if (savepoints.empty()) return std::nullopt;
  return savepoints.back().step;
}

std::optional<std::string> find_newest_savepoint(FileSystem& files, std::span<const std::string> folders,
                                                 const std::function<void(const std::string& path)>& read,
                                                 const SavepointProblem& report) {
  return format::find_newest_savepoint(files, folders, read,
                                       {.is_owner = true, .report = [&](const format::Problem& problem) {
                                          report(problem.path, problem.why, problem.set_aside_as);
                                        }});
}

std::function<void(const std::string& name)> make_savepoint_keeper(FileSystem& files, const std::string& folder,
                                                                   const std::vector<std::string>& copies,
                                                                   const ModelCheckpointOptions& options) {
  const format::RetentionPolicy retention{
      .keep_last = options.keep_last,
      .keep_best = options.best_by.empty() ? 0 : options.keep_best,
      .keep_every_steps = options.keep_every_steps,
      .best = options.best == Best::lowest ? format::BestValue::lowest : format::BestValue::highest,
      .max_bytes = options.max_bytes};
  const auto warn = [](const format::Problem& problem) {
    log(LogLevel::warning, "savepoint " + problem.path + " is not kept: " + problem.why);
  };
  const auto keeper = std::make_shared<format::SavepointKeeper>(files, folder,
                                                                format::KeeperOptions{.copies = copies,
                                                                                      .retention = retention,
                                                                                      .best_by = options.best_by,
                                                                                      .threads = options.threads,
                                                                                      .report = warn});
  return [keeper](const std::string& name) { keeper->keep(name); };
}

}  // namespace holdfast
