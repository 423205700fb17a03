#pragma once

// `holdfast inspect FILE`: what a file holds, for a person or as JSON.

#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct InspectOptions {
  std::string path;
  bool as_json = false;
};

// Of a file of Holdfast only the index is read, of other kinds as much as AnyFile needs. Returns the exit code; throws
// what opening threw.
int inspect(FileSystem& files, const InspectOptions& options, Console& console);

}  // namespace holdfast::cli
