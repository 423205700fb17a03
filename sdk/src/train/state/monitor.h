#pragma once

// What callbacks share that watch one of the logs.

#include <optional>
#include <string>

#include "holdfast/base/best.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// Returns logs[name]. If there is no such log, throws Error{invalid_argument} that lists the logs there are.
double monitored(const Logs& logs, const std::string& name, const std::string& callback);
// The same at the end of an epoch; nothing where the name is one of validation and the epoch had none.
std::optional<double> monitored_in_epoch(const TrainingContext& context, const Logs& logs, const std::string& name,
                                         const std::string& callback);

// `asked`, or what is known of the log `name` for Best::automatic. Throws Error{invalid_argument} where nothing is.
Best direction_of(const TrainingContext& context, Best asked, const std::string& name, const std::string& callback);
// The sentence of that error.
std::string unknown_direction(const std::string& name, const std::string& callback);

// Whether `value` is better than `than` by more than `min_delta`. NaN is never better.
bool is_better(double value, double than, Best best, double min_delta);

}  // namespace holdfast
