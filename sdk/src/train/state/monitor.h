#pragma once

// What callbacks that watch one of the logs have in common.

#include <string>

#include "holdfast/train/callback.h"
#include "holdfast/train/model_checkpoint.h"

namespace holdfast {

// logs[name]. Throws Error{invalid_argument} naming those there are when it is missing.
double monitored(const Logs& logs, const std::string& name, const std::string& callback);

// By more than `min_delta`. NaN is never better.
bool is_better(double value, double than, Best best, double min_delta);

}  // namespace holdfast
