#pragma once

// `holdfast inspect FILE`: what a file holds, for a person or as JSON.

#include <ostream>
#include <string>

#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct InspectOptions {
  bool as_json = false;
};

// Opens the file, which checks its digest, and writes the description to `out`. Returns the exit code; throws what
// opening threw.
int inspect(FileSystem& files, const std::string& path, const InspectOptions& options, std::ostream& out);

}  // namespace holdfast::cli
