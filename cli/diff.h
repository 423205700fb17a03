#pragma once

// `holdfast diff A B`: the differences between two files of any kind.

#include <optional>
#include <string>

#include "console.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

struct DiffOptions {
  std::string a;
  std::string b;
  std::optional<double> tolerance{};  // as of format::difference_of
  bool ignores_metadata = false;
};

// Holds one array of each file in memory at a time. Returns kDone for equal files, kDifferent for others. Throws what
// reading throws.
int diff(FileSystem& files, const DiffOptions& options, Console& console);

// Adds the subcommand with its options.
void add_diff(Subcommands& commands);

}  // namespace holdfast::cli
