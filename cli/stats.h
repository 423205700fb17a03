#pragma once

// `holdfast stats FILE`: what the values of each array look like.

#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct StatsOptions {
  std::string path;
  bool as_json = false;
};

// Reads the arrays of a file of any kind one by one. Returns the exit code; throws what reading threw.
int stats(FileSystem& files, const StatsOptions& options, Console& console);

}  // namespace holdfast::cli
