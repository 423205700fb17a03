// Callbacks watch a log by its name. A misspelled name must end fit() at the first epoch, not leave a callback without
// effect.

#include "train/state/monitor.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

double monitored(const Logs& logs, const std::string& name, const std::string& callback) {
  const auto found = logs.find(name);
  if (found != logs.end()) return found->second;
  // The most frequent mistake has an advice of its own.
  const bool is_of_validation = name.starts_with("val_") && logs.contains(name.substr(4));
  std::string names;
  for (const auto& [known, value] : logs) names += (names.empty() ? "" : ", ") + known;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} watches \"{}\", which this fit() does not log; it logs {}{}", callback, name, names,
                          is_of_validation ? "; give fit() .validation to log that one, too" : ""));
}

std::optional<double> monitored_in_epoch(const TrainingContext& context, const Logs& logs, const std::string& name,
                                         const std::string& callback) {
  // A misspelled name still throws: its log without "val_" is not there either.
  const bool is_of_validation = name.starts_with("val_") && logs.contains(name.substr(4)) && !logs.contains(name);
  if (is_of_validation && !context.is_validated()) return std::nullopt;
  return monitored(logs, name, callback);
}

std::string unknown_direction(const std::string& name, const std::string& callback) {
  return fmt::format(
      "{} compares values of \"{}\", and neither the metric nor its name says whether lower or higher ones are better; "
      "say .best = Best::lowest or .best = Best::highest, or override best() of the metric",
      callback, name);
}

Best direction_of(const TrainingContext& context, Best asked, const std::string& name, const std::string& callback) {
  if (asked != Best::automatic) return asked;
  if (const std::optional<Best> known = context.best_of(name)) return *known;
  throw Error(ErrorCode::invalid_argument, unknown_direction(name, callback));
}

// A NaN is never better, and nothing is better than one: callers keep it from becoming the best.
bool is_better(double value, double than, Best best, double min_delta) {
  return best == Best::lowest ? value < than - min_delta : value > than + min_delta;
}

}  // namespace holdfast
