#pragma once

// `holdfast inspect FILE`: the model, the arrays and the metadata of a file, for people or as JSON.

#include <cstdint>
#include <string>

#include "console.h"
#include "file_memory.h"
#include "holdfast/base/file_system.h"

namespace holdfast::cli {

struct Subcommands;

struct InspectOptions {
  std::string path;
  bool as_json = false;
  std::uint64_t max_memory_bytes = kMaxFileMemoryBytes;  // as of AnyFileOptions
};

// Reads no element of an array. Returns the exit code. Throws what opening the file throws.
int inspect(FileSystem& files, const InspectOptions& options, Console& console);

// Adds the subcommand with its options.
void add_inspect(Subcommands& commands);

}  // namespace holdfast::cli
