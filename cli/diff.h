#pragma once

// `holdfast diff A B`: what two files of any kind hold differently.

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

// Takes the arrays one by one. Returns kDone for equal files, kDifferent for others; throws what reading threw.
int diff(FileSystem& files, const DiffOptions& options, Console& console);

// Adds the subcommand with its options.
void add_diff(Subcommands& commands);

}  // namespace holdfast::cli
