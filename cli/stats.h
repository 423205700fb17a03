#pragma once

// `holdfast stats FILE`: the range and the distribution of the values of each array.

#include <cstdint>
#include <string>

#include "console.h"
#include "file_memory.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

struct StatsOptions {
  std::string path;
  bool as_json = false;
  std::uint64_t max_memory_bytes = kMaxFileMemoryBytes;  // as of AnyFileOptions
};

// Reads the arrays of a file of any kind one by one, and large ones piece by piece. Returns the exit code. Throws what
// reading throws.
int stats(FileSystem& files, const StatsOptions& options, Console& console);

// Adds the subcommand with its options.
void add_stats(Subcommands& commands);

}  // namespace holdfast::cli
